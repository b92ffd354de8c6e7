package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AdministratorProfile is the profile, and so the principal, of the key that
// EnsureCredentials makes: the one that AWS clients use unless told otherwise.
const AdministratorProfile = "default"

// maxCredentialsFile bounds what is read of a credentials file, in bytes.
const maxCredentialsFile = 1 << 20

// Keys is the set of access keys that are known. It does not change.
type Keys struct {
	byID      map[string]key
	byProfile map[string]key
}

// key is one access key. Its signer is its own, because a signer remembers the
// signing key it derived last, by access key id and not by secret.
type key struct {
	principal   Principal
	credentials aws.Credentials
	signing     aws.Credentials // without the session token, which is compared instead
	signer      *v4.Signer
}

// Credentials returns the key of a profile; ok is false when there is none.
func (k *Keys) Credentials(profile string) (creds aws.Credentials, ok bool) {
	found, ok := k.byProfile[profile]
	return found.credentials, ok
}

// LoadKeys reads a credentials file in AWS's shared format: every profile in
// it is a known key, and its name the principal's. A file that others than its
// owner may read or write is refused, as is one without any profile.
func LoadKeys(path string) (*Keys, error) {
	data, err := readPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("read the credentials file: %w", err)
	}
	keys, err := parseCredentials(string(data))
	if err != nil {
		return nil, fmt.Errorf("credentials file %s: %w", path, err)
	}
	return keys, nil
}

// readPrivate reads a file that is its owner's alone.
func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others than its owner can use the keys in it: run chmod 600 %s, and replace the keys if someone may have read them", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCredentialsFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxCredentialsFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxCredentialsFile)
	}
	return data, nil
}

// parseCredentials reads profiles: a line [name], then lines setting = value.
// Its errors never quote a value, which may be a secret.
func parseCredentials(text string) (*Keys, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("is not UTF-8 text")
	}
	keys := &Keys{byID: map[string]key{}, byProfile: map[string]key{}}
	var profile string
	var settings map[string]string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			if err := keys.add(profile, settings); err != nil {
				return nil, err
			}
			name, ok := strings.CutSuffix(line[1:], "]")
			if profile = strings.TrimSpace(name); !ok || profile == "" {
				return nil, fmt.Errorf("line %d: a profile must look like [name]", number)
			}
			settings = map[string]string{}
		case settings == nil:
			return nil, fmt.Errorf("line %d: a [profile] must come before its settings", number)
		default:
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				return nil, fmt.Errorf("line %d: a setting must look like name = value", number)
			}
			settings[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	if err := keys.add(profile, settings); err != nil {
		return nil, err
	}
	if len(keys.byID) == 0 {
		return nil, errors.New("has no profile: write [default] with aws_access_key_id and aws_secret_access_key, or remove the file to have a key made")
	}
	return keys, nil
}

// add adds a profile that was read to its end; nil settings: there was none.
func (k *Keys) add(profile string, settings map[string]string) error {
	if settings == nil {
		return nil
	}
	if _, ok := k.byProfile[profile]; ok {
		return fmt.Errorf("profile %q is there twice", profile)
	}
	for _, name := range []string{"aws_access_key_id", "aws_secret_access_key"} {
		if settings[name] == "" {
			return fmt.Errorf("profile %q has no %s", profile, name)
		}
	}
	creds := aws.Credentials{
		AccessKeyID:     settings["aws_access_key_id"],
		SecretAccessKey: settings["aws_secret_access_key"],
		SessionToken:    settings["aws_session_token"],
	}
	if other, ok := k.byID[creds.AccessKeyID]; ok {
		return fmt.Errorf("profiles %q and %q have the same aws_access_key_id", other.principal.Name, profile)
	}
	signing := creds
	signing.SessionToken = ""
	added := key{principal: Principal{Name: profile}, credentials: creds, signing: signing, signer: v4.NewSigner()}
	k.byID[creds.AccessKeyID] = added
	k.byProfile[profile] = added
	return nil
}

// EnsureCredentials makes an administrator's key and writes it to path, for
// its owner's eyes only, unless there is a file already. It reports whether it
// made one. The file is there as a whole or not at all; callers see to it that
// no two of them work on the same path.
func EnsureCredentials(path string) (made bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for the credentials file: %w", err)
	}
	text := fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = %s\n",
		AdministratorProfile, "AKIA"+randomString(16, keyIDAlphabet), randomString(40, secretAlphabet))
	if err := writeWhole(path, text); err != nil {
		return false, fmt.Errorf("write the credentials file: %w", err)
	}
	return true, nil
}

// The characters of access key ids and of secrets.
const (
	keyIDAlphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	secretAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)

// randomString returns n characters of an alphabet, all equally likely. The
// alphabet's length must divide 256.
func randomString(n int, alphabet string) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}

// writeWhole makes a file of mode 0600 appear at path at once, and durably.
func writeWhole(path, text string) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".credentials-*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // there is none any more once it is renamed
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
