package app

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/bursar-io/bursar/internal/runner/process"
	"github.com/bursar-io/bursar/internal/store"
)

// shimArgument makes this test program the parent of a worker.
const shimArgument = "shim"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == shimArgument {
		os.Exit(process.ShimMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func config(dir string) Config {
	return Config{
		DataDir: dir,
		Listen:  "127.0.0.1:0",
		Shim:    []string{os.Args[0], shimArgument},
		Log:     slog.New(slog.DiscardHandler),
	}
}

func TestStopUndoesStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for range 2 { // the second finds nothing of the first in its way
		a := New(config(dir))
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		told, err := ReadServerFile(dir)
		if err != nil || told != (ServerFile{URL: a.URL(), Region: DefaultRegion, PID: os.Getpid()}) {
			t.Errorf("the server tells %+v (%v)", told, err)
		}
		if status := ask(t, a.URL()); status != http.StatusForbidden {
			t.Errorf("an unsigned request was answered with status %d", status)
		}
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := ReadServerFile(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the stopped server's file: %v", err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, CredentialsFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the credentials file has mode %v (%v), want 0600", info.Mode(), err)
	}
}

// ask sends an unsigned request.
func ask(t *testing.T, url string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/describejobqueues", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestStartThatFailsLeavesNothingBehind(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := map[string]func(*Config){
		"the address is taken":     func(c *Config) { c.Listen = taken.Addr().String() },
		"there is no shim":         func(c *Config) { c.Shim = nil },
		"the account is no number": func(c *Config) { c.AccountID = "example" },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			wrong := config(dir)
			spoil(&wrong)
			if err := New(wrong).Start(t.Context()); err == nil {
				t.Error("it started")
			}
			right := New(config(dir))
			if err := right.Start(t.Context()); err != nil {
				t.Errorf("after a start that failed: %v", err)
			}
			if err := right.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDataDirectoryHasOneServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := New(config(dir))
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := New(config(dir)).Start(t.Context()); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got error %v, want store.ErrLocked", err)
	}
	if _, err := ReadServerFile(dir); err != nil {
		t.Errorf("the first server's file: %v", err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestURLOfAnUnspecifiedAddressIsOfThisMachine(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:0": "127.0.0.1", "[::]:0": "127.0.0.1", "127.0.0.1:0": "127.0.0.1"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Skipf("this machine cannot listen on %s: %v", address, err)
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		if got := urlOf(l); err != nil || got != "http://"+want+":"+port {
			t.Errorf("%s: got %s (%v)", address, got, err)
		}
		l.Close()
	}
}
