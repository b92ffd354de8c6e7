package process

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/trainingjob"
)

// workerVariable marks a worker and all that descend from it.
const workerVariable = "BURSAR_WORKER"

// Variables of the server's environment that workers see: what programs need
// to find themselves, their libraries and the machine's accelerators. Nothing
// else passes, credentials least of all.
var (
	inheritedNames = []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
		"VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
	inheritedPrefixes = []string{"LC_", "CUDA_", "NVIDIA_", "NCCL_", "OMP_"}
)

// cluster is what all workers of an attempt have in common.
type cluster struct {
	attempt runner.Attempt
	request *trainingjob.Request
	hosts   []string
	groups  []instanceGroup
	port    int // that the workers meet at
	gpus    int
}

type instanceGroup struct {
	Name  string   `json:"instance_group_name"`
	Type  string   `json:"instance_type"`
	Hosts []string `json:"hosts"`
}

// resourceConfig is SageMaker's resourceconfig.json.
type resourceConfig struct {
	CurrentHost  string          `json:"current_host"`
	CurrentType  string          `json:"current_instance_type"`
	CurrentGroup string          `json:"current_group_name"`
	Hosts        []string        `json:"hosts"`
	Groups       []instanceGroup `json:"instance_groups"`
	Network      string          `json:"network_interface_name"`
}

// channelConfig is a member of SageMaker's inputdataconfig.json.
type channelConfig struct {
	ContentType  string `json:"ContentType,omitempty"`
	InputMode    string `json:"TrainingInputMode"`
	Distribution string `json:"S3DistributionType"`
	Wrapper      string `json:"RecordWrapperType"`
}

func newCluster(a runner.Attempt, request *trainingjob.Request, instances []trainingjob.Instance, port int) *cluster {
	c := &cluster{attempt: a, request: request, hosts: sortedHosts(len(instances)), port: port, gpus: countGPUs()}
	n := 0
	for _, g := range request.Groups {
		group := instanceGroup{Name: g.Name, Type: g.InstanceType}
		for range g.InstanceCount {
			n++
			group.Hosts = append(group.Hosts, hostName(n))
		}
		slices.Sort(group.Hosts)
		c.groups = append(c.groups, group)
	}
	return c
}

// countGPUs counts the NVIDIA devices of this machine. All workers see all of
// them.
func countGPUs() int {
	devices, _ := filepath.Glob("/dev/nvidia[0-9]*") // the pattern is well-formed
	return len(devices)
}

// member is one worker of a cluster, and where it finds things.
type member struct {
	*cluster
	number      int // from 1
	instance    trainingjob.Instance
	root        string // /opt/ml, or what stands for it
	checkpoints string // below root
}

func (c *cluster) member(number int, instance trainingjob.Instance, root, checkpoints string) member {
	return member{cluster: c, number: number, instance: instance, root: root, checkpoints: checkpoints}
}

func (m member) host() string { return hostName(m.number) }

// rank is the worker's place among the hosts: one process runs on each.
func (m member) rank() int {
	rank, _ := slices.BinarySearch(m.hosts, m.host())
	return rank
}

func (m member) path(elements ...string) string {
	return filepath.Join(append([]string{m.root}, elements...)...)
}

// network is the interface that workers on one machine reach each other on.
const network = "lo"

func (m member) resourceConfig() resourceConfig {
	return resourceConfig{
		CurrentHost: m.host(), CurrentType: m.instance.Type, CurrentGroup: m.instance.Group,
		Hosts: m.hosts, Groups: m.groups, Network: network,
	}
}

func (m member) inputDataConfig() map[string]channelConfig {
	channels := map[string]channelConfig{}
	for _, c := range m.request.Channels {
		channels[c.Name] = channelConfig{
			ContentType:  c.ContentType,
			InputMode:    firstOf(c.InputMode, m.request.Algorithm.InputMode, "File"),
			Distribution: firstOf(c.Distribution, "FullyReplicated"),
			Wrapper:      firstOf(c.RecordWrapperType, "None"),
		}
	}
	return channels
}

// hyperparameters as SageMaker's own tools give them to programs: each value
// that is JSON as what it stands for, any other as a string.
func (m member) hyperparameters() map[string]any {
	values := map[string]any{}
	for name, text := range m.request.HyperParameters {
		values[name] = text
		if json.Valid([]byte(text)) {
			values[name] = json.RawMessage(text)
		}
	}
	return values
}

// configFiles are those of /opt/ml/input/config.
func (m member) configFiles() map[string]any {
	hyperparameters := m.request.HyperParameters
	if hyperparameters == nil {
		hyperparameters = map[string]string{}
	}
	return map[string]any{
		"hyperparameters.json": hyperparameters,
		"resourceconfig.json":  m.resourceConfig(),
		"inputdataconfig.json": m.inputDataConfig(),
	}
}

// environment is a worker's whole environment: what it inherits of the
// server's, over that what its request sets, over that what tells it where and
// who it is.
func environment(server []string, m member) []string {
	all := map[string]string{"SM_LOG_LEVEL": "20"}
	for _, entry := range server {
		if name, value, ok := strings.Cut(entry, "="); ok && inherited(name) {
			all[name] = value
		}
	}
	maps.Copy(all, m.request.Environment)
	maps.Copy(all, m.identityVariables())
	maps.Copy(all, m.rendezvousVariables())
	maps.Copy(all, m.containerVariables())
	entries := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		entries = append(entries, name+"="+all[name])
	}
	return entries
}

func inherited(name string) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(inheritedNames, name) || slices.ContainsFunc(inheritedPrefixes, hasPrefix)
}

func (m member) identityVariables() map[string]string {
	return map[string]string{
		"BURSAR_JOB_ID":     m.attempt.Job,
		"BURSAR_JOB_NAME":   m.attempt.JobName,
		"BURSAR_QUEUE":      m.attempt.Queue,
		"BURSAR_SHARE":      m.attempt.Share,
		"BURSAR_ATTEMPT":    strconv.Itoa(m.attempt.Run),
		workerVariable:      workerMark(m.attempt.Key, m.number),
		"TRAINING_JOB_NAME": m.attempt.TrainingJobName,
		"TRAINING_JOB_ARN":  m.attempt.TrainingJobARN,
	}
}

// workerMark is the value of workerVariable: no two workers have the same.
func workerMark(key runner.Key, number int) string {
	return key.Job + "/" + strconv.Itoa(key.Run) + "/" + strconv.Itoa(number)
}

// rendezvousVariables let distributed programs find each other: those of
// torch.distributed for a program started as one process per instance, and
// torchrun's own defaults, so that it needs no flags.
func (m member) rendezvousVariables() map[string]string {
	const address = "127.0.0.1"
	port, rank, size := strconv.Itoa(m.port), strconv.Itoa(m.rank()), strconv.Itoa(len(m.hosts))
	return map[string]string{
		"MASTER_ADDR": address, "MASTER_PORT": port,
		"WORLD_SIZE": size, "RANK": rank,
		"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0",
		"GROUP_WORLD_SIZE": size, "GROUP_RANK": rank, "NODE_RANK": rank,
		"PET_NNODES": size, "PET_NODE_RANK": rank, "PET_MASTER_ADDR": address, "PET_MASTER_PORT": port,
		"SM_MASTER_ADDR": address, "SM_MASTER_PORT": port,
	}
}

// containerVariables are those of SageMaker's training containers.
func (m member) containerVariables() map[string]string {
	hosts := asJSON(m.hosts)
	all := map[string]string{
		"SM_MODEL_DIR":              m.path("model"),
		"SM_INPUT_DIR":              m.path("input"),
		"SM_INPUT_DATA_DIR":         m.path("input", "data"),
		"SM_INPUT_CONFIG_DIR":       m.path("input", "config"),
		"SM_OUTPUT_DIR":             m.path("output"),
		"SM_OUTPUT_DATA_DIR":        m.path("output", "data"),
		"SM_OUTPUT_FAILURE":         m.path("output", "failure"),
		"SM_CHECKPOINT_DIR":         m.path(m.checkpoints),
		"SM_HOSTS":                  hosts,
		"SM_HOST_COUNT":             strconv.Itoa(len(m.hosts)),
		"SM_CURRENT_HOST":           m.host(),
		"SM_CURRENT_HOST_RANK":      strconv.Itoa(m.rank()),
		"SM_CURRENT_INSTANCE_TYPE":  m.instance.Type,
		"SM_CURRENT_INSTANCE_GROUP": m.instance.Group,
		"SM_NETWORK_INTERFACE_NAME": network,
		"SM_NUM_CPUS":               strconv.Itoa(runtime.NumCPU()),
		"SM_NUM_GPUS":               strconv.Itoa(m.gpus),
		"SM_RESOURCE_CONFIG":        asJSON(m.resourceConfig()),
		"SM_INPUT_DATA_CONFIG":      asJSON(m.inputDataConfig()),
		"SM_CHANNELS":               asJSON(m.channelNames()),
		"SM_HPS":                    asJSON(m.hyperparameters()),
		"SM_USER_ARGS":              asJSON(m.userArguments()),
		"SM_TRAINING_ENV":           asJSON(m.trainingEnvironment()),
	}
	for name, value := range m.request.HyperParameters {
		setNamed(all, "SM_HP_", name, value)
	}
	for name, path := range m.channelPaths() {
		setNamed(all, "SM_CHANNEL_", name, path)
	}
	return all
}

// setNamed sets a variable for something with a name of its own, in capitals.
// SageMaker's older tools keep a hyphen in it and the newer ones do not. A name
// that cannot be in an environment is only in the JSON forms.
func setNamed(all map[string]string, prefix, name, value string) {
	if strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
		return
	}
	name = strings.ToUpper(name)
	all[prefix+name] = value
	all[prefix+strings.ReplaceAll(name, "-", "_")] = value
}

func (m member) channelNames() []string {
	return slices.Sorted(maps.Keys(m.channelPaths()))
}

func (m member) channelPaths() map[string]string {
	paths := map[string]string{}
	for _, c := range m.request.Channels {
		paths[c.Name] = m.path("input", "data", c.Name)
	}
	return paths
}

// userArguments are the hyperparameters as flags of a command line.
func (m member) userArguments() []string {
	arguments := []string{}
	for _, name := range slices.Sorted(maps.Keys(m.request.HyperParameters)) {
		flag := "--" + name
		if len(name) == 1 {
			flag = "-" + name
		}
		arguments = append(arguments, flag, m.request.HyperParameters[name])
	}
	return arguments
}

func (m member) trainingEnvironment() map[string]any {
	return map[string]any{
		"job_name":               m.attempt.TrainingJobName,
		"current_host":           m.host(),
		"current_instance_type":  m.instance.Type,
		"current_instance_group": m.instance.Group,
		"hosts":                  m.hosts,
		"master_addr":            "127.0.0.1",
		"master_port":            m.port,
		"hyperparameters":        m.hyperparameters(),
		"channel_input_dirs":     m.channelPaths(),
		"input_data_config":      m.inputDataConfig(),
		"resource_config":        m.resourceConfig(),
		"input_dir":              m.path("input"),
		"input_data_dir":         m.path("input", "data"),
		"input_config_dir":       m.path("input", "config"),
		"model_dir":              m.path("model"),
		"output_dir":             m.path("output"),
		"output_data_dir":        m.path("output", "data"),
		"network_interface_name": network,
		"num_cpus":               runtime.NumCPU(),
		"num_gpus":               m.gpus,
		"log_level":              20,
	}
}

// asJSON is for values of this file's own making, which have a JSON form.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(text)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
