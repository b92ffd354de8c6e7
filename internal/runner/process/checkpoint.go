package process

import (
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// newestCheckpoint is when the newest complete file below dir was last
// written; zero: there is none. Files and directories whose names end in .tmp
// or .partial are still being written (section 6 of the semantics is about
// completed checkpoints). A time later than now counts as now, so that nobody
// gains from a clock put forward.
func newestCheckpoint(dir string, now time.Time) time.Time {
	var newest time.Time
	// What cannot be read, or vanishes meanwhile, is no complete checkpoint.
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if unfinished(entry.Name()) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	if newest.After(now) {
		return now
	}
	return newest
}

func unfinished(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".partial")
}
