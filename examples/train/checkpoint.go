package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checkpoint is all that a training needs to go on.
type checkpoint struct {
	Step  int   `json:"step"`
	Model model `json:"model"`
}

// readCheckpoint returns the checkpoint at path; found is false if there is none.
func readCheckpoint(path string) (c checkpoint, found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint{}, false, nil
	}
	if err != nil {
		return checkpoint{}, false, fmt.Errorf("reading the checkpoint: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return checkpoint{}, false, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return c, true, nil
}

// writeJSON writes v to path so that a reader finds the old file or the new
// one, whole, whatever happens meanwhile.
func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the directory of %s: %w", path, err)
	}
	unfinished := path + ".tmp"
	if err := writeSynced(unfinished, data); err != nil {
		return fmt.Errorf("writing %s: %w", unfinished, err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	return nil
}

func writeSynced(path string, data []byte) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}
