package process

import (
	"os"
	"strconv"
)

// rotatingLog keeps the newest part of a stream in a few files of limited
// size: path is the newest, path.1 the one before it, and so on. What cannot
// be written is lost: a full disk must not make the worker wait.
type rotatingLog struct {
	path  string
	limit int64 // bytes in one file
	keep  int   // files, the newest included

	file *os.File
	size int64
}

// Write never fails.
func (l *rotatingLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n, ok := l.append(rest)
		if !ok {
			break
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// append writes as much as there is room for in the newest file, or makes room.
func (l *rotatingLog) append(p []byte) (n int, ok bool) {
	if l.file == nil && !l.open() {
		return 0, false
	}
	if l.size >= l.limit {
		return 0, l.rotate()
	}
	n, err := l.file.Write(p[:min(int64(len(p)), l.limit-l.size)])
	l.size += int64(n)
	return n, err == nil
}

func (l *rotatingLog) open() bool {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false
	}
	l.file, l.size = f, 0
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	return true
}

// rotate makes room for a new file by dropping the oldest, and reports whether
// there is room.
func (l *rotatingLog) rotate() bool {
	l.close()
	for n := l.keep - 1; n > 0; n-- {
		_ = os.Rename(rotated(l.path, n-1), rotated(l.path, n))
	}
	if l.keep == 1 {
		_ = os.Remove(l.path)
	}
	return l.open() && l.size < l.limit
}

func (l *rotatingLog) close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// rotated is the name of a log's file after n rotations.
func rotated(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}
