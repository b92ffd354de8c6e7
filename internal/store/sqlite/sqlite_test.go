package sqlite_test

import (
	"log/slog"
	"testing"

	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/store/sqlite"
	"github.com/bursar-io/bursar/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	dirs := map[store.Store]string{}
	open := func(t *testing.T, dir string) store.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		dirs[s] = dir
		return s
	}
	storetest.Run(t, storetest.Engine{
		Open: func(t *testing.T) store.Store { return open(t, t.TempDir()) },
		Reopen: func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, dirs[s])
		},
	})
}
