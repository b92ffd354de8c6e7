package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// crashingDir names the data directory in the environment of a child process
// that is to be killed.
const crashingDir = "BURSAR_TEST_CRASHING_DIR"

// batchSize is how many jobs the batch that follows job seq has, so that what a
// child committed can be checked by who does not know where it began.
func batchSize(seq int64) int { return int(seq*7%31) + 1 }

// commitUntilKilled commits batch after batch, and prints the number of the
// last job of each when it is acknowledged.
func commitUntilKilled(dir string) {
	s, err := Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	var seq int64
	if err := s.reading.QueryRow("SELECT count(*) FROM jobs").Scan(&seq); err != nil {
		fmt.Println(err)
		return
	}
	for {
		if err := s.Commit(context.Background(), numbered(seq, batchSize(seq), 1000)); err != nil {
			fmt.Println(err)
			return
		}
		seq += int64(batchSize(seq))
		fmt.Println(seq)
	}
}

// A process is killed at any moment, again and again on the same directory;
// each time all that was acknowledged is there, and only whole batches.
func TestKilledAtAnyMoment(t *testing.T) {
	const kills = 12
	dir := t.TempDir()
	var committed int64
	for range kills {
		acknowledged := killAfter(t, dir, 1+rand.IntN(40))
		s := openIn(t, dir)
		there := count(t, s, "jobs")
		if there < acknowledged {
			t.Errorf("job %d was acknowledged, only %d are there", acknowledged, there)
		}
		for committed < there {
			committed += int64(batchSize(committed))
		}
		checkWhole(t, s, committed)
		if t.Failed() {
			return
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter runs a child, kills it while it goes on after some acknowledged
// batches, and returns the last number that it acknowledged.
func killAfter(t *testing.T, dir string, batches int) (acknowledged int64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashingDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ { // to the end of what it printed before it died
		if acknowledged, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Errorf("the child says: %s", lines.Text())
		}
		if n == batches {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := child.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	return acknowledged
}
