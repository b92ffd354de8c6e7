package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/runner"
)

func readAll(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// logFor makes the directory of a worker, and a log that is rotated there as a
// shim does.
func logFor(t *testing.T, dir string, key runner.Key, limit int64, keep int) *rotatingLog {
	t.Helper()
	worker := workerDir(AttemptDir(dir, key), 1)
	if err := os.MkdirAll(worker, 0o700); err != nil {
		t.Fatal(err)
	}
	return &rotatingLog{path: filepath.Join(worker, Stdout+logSuffix), limit: limit, keep: keep}
}

func TestLogsKeepTheNewestOfAStream(t *testing.T) {
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		key := runner.Key{Job: fmt.Sprint("job-", n), Run: 1}
		limit, keep := rapid.Int64Range(1, 20).Draw(rt, "limit"), rapid.IntRange(1, 4).Draw(rt, "keep")
		log := logFor(t, base, key, limit, keep)
		defer log.close()
		var written []byte
		for _, part := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 50)).Draw(rt, "parts") {
			if n, err := log.Write(part); n != len(part) || err != nil {
				rt.Fatalf("wrote %d of %d bytes: %v", n, len(part), err)
			}
			written = append(written, part...)
		}
		files := LogFiles(base, key, 1, Stdout)
		if len(files) > keep {
			rt.Fatalf("%d files are kept, want at most %d", len(files), keep)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Size() > limit {
				rt.Fatalf("%s: %v, %v; want at most %d bytes", file, info, err, limit)
			}
		}
		kept := readAll(t, OpenLog(t.Context(), base, key, 1, Stdout, false, nil))
		if !bytes.HasSuffix(written, []byte(kept)) {
			rt.Fatalf("kept is %q, which is not the end of %q", kept, written)
		}
		if least := min(int64(len(written)), limit*int64(keep-1)); int64(len(kept)) < least {
			rt.Fatalf("%d bytes are kept, want at least %d", len(kept), least)
		}
	})
}

func TestFollowingALogAcrossRotations(t *testing.T) {
	dir, key := t.TempDir(), runner.Key{Job: "job", Run: 1}
	var done atomic.Bool
	log := OpenLog(t.Context(), dir, key, 1, Stdout, true, done.Load) // before there is anything
	defer log.Close()
	out := logFor(t, dir, key, 100, 3)
	defer out.close()
	var want, got strings.Builder
	buffer := make([]byte, 64)
	for i := range 200 {
		line := fmt.Sprintf("step %d\n", i)
		want.WriteString(line)
		if _, err := out.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		for i%5 == 4 && got.Len() < want.Len() {
			n, err := log.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(buffer[:n])
		}
	}
	done.Store(true)
	rest, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	got.Write(rest)
	if got.String() != want.String() {
		t.Errorf("read %d bytes that differ from the %d written", got.Len(), want.Len())
	}
}

func TestFollowingGoesOnWithWhatIsLeft(t *testing.T) {
	dir, key := t.TempDir(), runner.Key{Job: "job", Run: 1}
	out := logFor(t, dir, key, 10, 2)
	defer out.close()
	write := func(text string) {
		if _, err := out.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	log := OpenLog(t.Context(), dir, key, 1, Stdout, true, func() bool { return true })
	defer log.Close()
	buffer := make([]byte, 100)
	if n, err := log.Read(buffer); err != nil || string(buffer[:n]) != "first\n" {
		t.Fatalf("read %q, %v", buffer[:n], err)
	}
	write("2222" + "3333333333" + "4444444444" + "5")
	rest, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "2222" + "4444444444" + "5"; string(rest) != want {
		t.Errorf("the rest is %q, want %q: what is dropped is left out, nothing else", rest, want)
	}
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log := OpenLog(ctx, t.TempDir(), runner.Key{Job: "job", Run: 1}, 1, Stdout, true, func() bool { cancel(); return false })
	defer log.Close()
	if _, err := io.ReadAll(log); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

func TestLogsOfNothing(t *testing.T) {
	dir := t.TempDir()
	for _, job := range []string{"job", "../job", "/job", ""} {
		if text := readAll(t, OpenLog(t.Context(), dir, runner.Key{Job: job, Run: 1}, 1, Stdout, false, nil)); text != "" {
			t.Errorf("log of %q is %q", job, text)
		}
	}
	if files := LogFiles(dir, runner.Key{Job: "job", Run: 1}, 1, "claim.json"); len(files) > 0 {
		t.Errorf("files of what is no stream: %v", files)
	}
}

func TestAWorkersOutputIsKeptAndRotated(t *testing.T) {
	b := newBench(t)
	b.r.cfg.LogLimit, b.r.cfg.LogFiles = 1000, 3
	a, end := b.run(shell(t, 1, nil, "i=0; while [ $i -lt 1000 ]; do echo line $i; echo error $i >&2; i=$((i+1)); done"))
	if end.Outcome != runner.Succeeded {
		t.Fatalf("ended %+v", end)
	}
	for stream, last := range map[string]string{Stdout: "line 999\n", Stderr: "error 999\n"} {
		text := readAll(t, OpenLog(t.Context(), b.dir, a.Key, 1, stream, false, nil))
		if !strings.HasSuffix(text, last) || len(text) < 2000 || len(text) > 3000 {
			t.Errorf("%s has %d bytes and ends in %q", stream, len(text), text[max(0, len(text)-20):])
		}
		if files := LogFiles(b.dir, a.Key, 1, stream); len(files) != 3 {
			t.Errorf("files of %s are %v", stream, files)
		}
	}
}
