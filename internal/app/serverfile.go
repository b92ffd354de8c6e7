package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Names of files in a data directory that others may read.
const (
	// CredentialsFile holds the access keys, in AWS's shared format.
	CredentialsFile = "credentials"
	// serverFile tells how to reach the server while it runs.
	serverFile = "server.json"
)

// ServerFile is what a running server tells in its data directory.
type ServerFile struct {
	URL    string `json:"url"`
	Region string `json:"region"`
	PID    int    `json:"pid"`
}

// ReadServerFile returns what the server on a data directory tells. The error
// wraps fs.ErrNotExist where none runs.
func ReadServerFile(dataDir string) (ServerFile, error) {
	path := filepath.Join(dataDir, serverFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return ServerFile{}, fmt.Errorf("looking for a server: %w", err)
	}
	var f ServerFile
	if err := json.Unmarshal(data, &f); err != nil {
		return ServerFile{}, fmt.Errorf("looking for a server: %s: %w", path, err)
	}
	return f, nil
}

// write puts the file in place as a whole.
func (f ServerFile) write(dataDir string) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", serverFile, err)
	}
	path := filepath.Join(dataDir, serverFile)
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return fmt.Errorf("telling how to reach the server: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("telling how to reach the server: %w", err)
	}
	return nil
}
