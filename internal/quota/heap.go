package quota

// heap is a binary heap whose items know their place in it, so that any item
// can be removed or moved in logarithmic time.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	place  func(item T, at int) // records where the item is; -1: no longer in the heap
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) first() T { return h.items[0] }

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	h.place(item, len(h.items)-1)
	h.up(len(h.items) - 1)
}

func (h *heap[T]) pop() T {
	item := h.items[0]
	h.remove(0)
	return item
}

func (h *heap[T]) remove(at int) {
	item, last := h.items[at], len(h.items)-1
	if at != last {
		h.swap(at, last)
	}
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	h.place(item, -1)
	if at != last {
		h.fix(at)
	}
}

// fix restores the order after the item's key changed.
func (h *heap[T]) fix(at int) {
	if !h.up(at) {
		h.down(at)
	}
}

func (h *heap[T]) up(at int) bool {
	start := at
	for at > 0 {
		parent := (at - 1) / 2
		if !h.before(h.items[at], h.items[parent]) {
			break
		}
		h.swap(at, parent)
		at = parent
	}
	return at != start
}

func (h *heap[T]) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.before(h.items[right], h.items[child]) {
			child = right
		}
		if !h.before(h.items[child], h.items[at]) {
			return
		}
		h.swap(at, child)
		at = child
	}
}

func (h *heap[T]) swap(a, b int) {
	h.items[a], h.items[b] = h.items[b], h.items[a]
	h.place(h.items[a], a)
	h.place(h.items[b], b)
}

// firsts returns the first n items in order, leaving the heap as it is: it
// explores from the root, where the next best is always a child of one taken.
func (h *heap[T]) firsts(n int) []T {
	n = min(n, len(h.items))
	if n <= 0 {
		return nil
	}
	taken := make([]T, 0, n)
	open := heap[int]{
		before: func(a, b int) bool { return h.before(h.items[a], h.items[b]) },
		place:  func(int, int) {},
	}
	open.push(0)
	for len(taken) < n {
		at := open.pop()
		taken = append(taken, h.items[at])
		for child := 2*at + 1; child <= 2*at+2 && child < len(h.items); child++ {
			open.push(child)
		}
	}
	return taken
}
