package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/app"
	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/bursarapi"
)

const (
	defaultDataDir = "/var/lib/bursar"

	envEndpoint = "BURSAR_ENDPOINT"
	envDataDir  = "BURSAR_DATA_DIR"
)

func (c *commands) addConnectionFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&c.endpoint, "endpoint", "", "URL of the server (default $"+envEndpoint+", or as its data directory says)")
	flags.StringVar(&c.dataDir, "data-dir", "", "data directory of the server (default $"+envDataDir+", or "+defaultDataDir+")")
	flags.StringVar(&c.region, "region", "", "region to sign requests for (default as the server's data directory says, or $AWS_REGION)")
}

// server is a running server and how to talk to it.
type server struct {
	endpoint    string
	region      string
	credentials aws.Credentials
}

// connect finds the server: what a flag says comes before what the environment
// says, and that before what is in a data directory.
func (c *commands) connect() (server, error) {
	dir := cmp.Or(c.dataDir, c.Getenv(envDataDir), defaultDataDir)
	s := server{endpoint: cmp.Or(c.endpoint, c.Getenv(envEndpoint))}
	found, err := app.ReadServerFile(dir)
	switch {
	case err == nil:
		s.endpoint = cmp.Or(s.endpoint, found.URL)
	case !errors.Is(err, fs.ErrNotExist):
		return server{}, err
	case s.endpoint == "":
		return server{}, fmt.Errorf("no server found: none runs on data directory %s; start one with \"bursar serve\", or name one with --data-dir, --endpoint or %s", dir, envEndpoint)
	}
	s.region = cmp.Or(c.region, found.Region, c.Getenv("AWS_REGION"), c.Getenv("AWS_DEFAULT_REGION"), app.DefaultRegion)
	s.credentials, err = c.findCredentials(dir)
	return s, err
}

// findCredentials looks for an access key: in the data directory that a flag
// names, in the environment, in the credentials file that the environment
// names, and in the default data directory.
func (c *commands) findCredentials(dir string) (aws.Credentials, error) {
	if c.dataDir == "" {
		if id := c.Getenv("AWS_ACCESS_KEY_ID"); id != "" {
			return aws.Credentials{
				AccessKeyID:     id,
				SecretAccessKey: c.Getenv("AWS_SECRET_ACCESS_KEY"),
				SessionToken:    c.Getenv("AWS_SESSION_TOKEN"),
			}, nil
		}
		if path := c.Getenv("AWS_SHARED_CREDENTIALS_FILE"); path != "" {
			return readCredentials(path, cmp.Or(c.Getenv("AWS_PROFILE"), auth.AdministratorProfile))
		}
	}
	return readCredentials(filepath.Join(dir, app.CredentialsFile), auth.AdministratorProfile)
}

func readCredentials(path, profile string) (aws.Credentials, error) {
	keys, err := auth.LoadKeys(path)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("no access key found (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --data-dir): %w", err)
	}
	credentials, ok := keys.Credentials(profile)
	if !ok {
		return aws.Credentials{}, fmt.Errorf("no access key found: %s has no profile %q", path, profile)
	}
	return credentials, nil
}

// asker asks Bursar's own door.
func (c *commands) asker(s server) *bursarapi.Client {
	return bursarapi.NewClient(s.endpoint, c.http, func(r *http.Request, body []byte) error {
		return auth.Sign(r, body, s.credentials, bursarapi.Service, s.region, c.Now())
	})
}

// batch is a client of the AWS Batch door.
func (c *commands) batch(s server) *batch.Client {
	return batch.New(batch.Options{
		BaseEndpoint: aws.String(s.endpoint),
		Region:       s.region,
		HTTPClient:   c.http,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return s.credentials, nil
		}),
	})
}
