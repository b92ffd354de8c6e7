package auth

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEnsureCredentialsMakesOneKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "credentials")
	made, err := EnsureCredentials(path)
	if err != nil || !made {
		t.Fatalf("EnsureCredentials = %v, %v; want a key to be made", made, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %04o, want 0600", mode)
	}
	keys, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	creds, ok := keys.Credentials(AdministratorProfile)
	if !ok {
		t.Fatal("the administrator's profile is not there")
	}
	if !regexp.MustCompile(`^AKIA[A-Z2-7]{16}$`).MatchString(creds.AccessKeyID) {
		t.Errorf("access key id %q", creds.AccessKeyID)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9+/]{40}$`).MatchString(creds.SecretAccessKey) {
		t.Errorf("a secret of %d characters, or of others than it may have", len(creds.SecretAccessKey))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files (%v), want the credentials alone", len(entries), err)
	}

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := EnsureCredentials(path); err != nil || made {
		t.Errorf("second EnsureCredentials = %v, %v; want nothing to be made", made, err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file changed (%v)", err)
	}
}

func TestEnsureCredentialsMakesDifferentKeys(t *testing.T) {
	seen := map[string]bool{}
	for range 5 {
		path := filepath.Join(t.TempDir(), "credentials")
		if _, err := EnsureCredentials(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(text)] {
			t.Fatal("the same key twice")
		}
		seen[string(text)] = true
	}
}

func TestEnsureCredentialsWithoutADirectory(t *testing.T) {
	if _, err := EnsureCredentials(filepath.Join(t.TempDir(), "none", "credentials")); err == nil || !strings.Contains(err.Error(), "credentials file") {
		t.Errorf("error %v, want one that names the credentials file", err)
	}
}

func TestLoadKeysRefusesAFileOthersCanRead(t *testing.T) {
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o602} {
		path := filepath.Join(t.TempDir(), "credentials")
		if err := os.WriteFile(path, []byte(testCredentials), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %04o: error %v, want one that says what to do", mode, err)
		}
	}
}

func TestLoadKeysRefusesAHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(strings.Repeat("#\n", maxCredentialsFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error %v", err)
	}
}

func TestParseCredentials(t *testing.T) {
	keys, err := parseCredentials("# two people\r\n; and a comment\r\n[ ada ]\r\naws_access_key_id = A\r\nAWS_Secret_Access_Key = s=1\r\nregion = x\r\n\r\n[bob]\naws_access_key_id=B\naws_secret_access_key=s2")
	if err != nil {
		t.Fatal(err)
	}
	ada, ok := keys.Credentials("ada")
	if !ok || ada.AccessKeyID != "A" || ada.SecretAccessKey != "s=1" {
		t.Errorf("ada: %+v, %v", ada.AccessKeyID, ok)
	}
	if bob, ok := keys.Credentials("bob"); !ok || bob.AccessKeyID != "B" {
		t.Errorf("bob: %+v, %v", bob.AccessKeyID, ok)
	}
	if _, ok := keys.Credentials("eve"); ok {
		t.Error("eve is there")
	}
}

func TestParseCredentialsRefuses(t *testing.T) {
	const secret = "do-not-show-me"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "has no profile"},
		"comments alone":    {"# nothing\n", "has no profile"},
		"no section":        {"aws_secret_access_key = " + secret, "line 1: a [profile] must come before"},
		"section not ended": {"[default\n", "line 1: a profile must look like [name]"},
		"section unnamed":   {"[ ]\n", "line 1: a profile must look like [name]"},
		"no equals sign":    {"[a]\n" + secret + "\n", "line 2: a setting must look like"},
		"no id":             {"[a]\naws_secret_access_key=" + secret, `profile "a" has no aws_access_key_id`},
		"no secret":         {"[a]\naws_access_key_id=A\n[b]\n", `profile "a" has no aws_secret_access_key`},
		"empty profile":     {"[a]\n", `profile "a" has no aws_access_key_id`},
		"profile twice":     {"[a]\naws_access_key_id=A\naws_secret_access_key=" + secret + "\n[a]\naws_access_key_id=B\naws_secret_access_key=x", `profile "a" is there twice`},
		"id twice":          {"[a]\naws_access_key_id=A\naws_secret_access_key=" + secret + "\n[b]\naws_access_key_id=A\naws_secret_access_key=x", `profiles "a" and "b" have the same`},
		"not text":          {"[a]\naws_access_key_id=\xff\xfe", "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseCredentials(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Error("the error shows a secret")
			}
		})
	}
}

func FuzzParseCredentials(f *testing.F) {
	f.Add(testCredentials)
	f.Add("[a]\n=\n[\n]")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseCredentials(text)
		if (keys == nil) == (err == nil) {
			t.Fatalf("keys %v with error %v", keys, err)
		}
		if err == nil && (len(keys.byID) == 0 || len(keys.byID) != len(keys.byProfile)) {
			t.Fatalf("%d ids of %d profiles", len(keys.byID), len(keys.byProfile))
		}
	})
}
