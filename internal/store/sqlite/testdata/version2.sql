CREATE TABLE jobs (
		seq        INTEGER PRIMARY KEY,
		id         TEXT    NOT NULL UNIQUE,
		queue      TEXT    NOT NULL,
		share      TEXT    NOT NULL,
		name       TEXT    NOT NULL,
		folded     TEXT    NOT NULL, -- the name, without differences in case
		created_ms INTEGER NOT NULL,
		token      TEXT    NOT NULL,
		token_hash TEXT    NOT NULL,
		status     TEXT    NOT NULL,
		finished   INTEGER NOT NULL, -- 1 if status is final
		record     TEXT    NOT NULL
	, identifier TEXT    NOT NULL DEFAULT '', stopped_ms INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE journal (
		seq       INTEGER PRIMARY KEY,
		at_ms     INTEGER NOT NULL,
		kind      TEXT    NOT NULL,
		name      TEXT    NOT NULL,
		subject   TEXT    NOT NULL,
		principal TEXT    NOT NULL,
		data      TEXT
	) STRICT;
CREATE TABLE payloads (
		seq     INTEGER PRIMARY KEY, -- of the job
		payload TEXT    NOT NULL
	) STRICT;
CREATE TABLE resources (
		kind   TEXT NOT NULL,
		queue  TEXT NOT NULL, -- of a share; else empty
		name   TEXT NOT NULL,
		record TEXT NOT NULL,
		PRIMARY KEY (kind, queue, name)
	) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_active       ON jobs (finished) WHERE finished = 0;
CREATE INDEX jobs_ended             ON jobs (queue, stopped_ms)                     WHERE identifier <> '' AND finished = 1;
CREATE INDEX jobs_identifier        ON jobs (queue, identifier, created_ms)         WHERE identifier <> '';
CREATE INDEX jobs_identifier_status ON jobs (queue, identifier, status, created_ms) WHERE identifier <> '';
CREATE INDEX jobs_name         ON jobs (queue, folded, created_ms);
CREATE INDEX jobs_queue        ON jobs (queue, created_ms, seq, folded);
CREATE INDEX jobs_share        ON jobs (queue, share, created_ms);
CREATE INDEX jobs_share_status ON jobs (queue, share, status, created_ms);
CREATE INDEX jobs_status       ON jobs (queue, status, created_ms);
CREATE INDEX jobs_token        ON jobs (created_ms) WHERE token <> '';
INSERT INTO jobs VALUES (1, '9e3779b1-0000-4000-8000-000000000001', 'queue', 'share-1', 'train-1', 'TRAIN-1', 1700000000000, 'token-1', '5555555555555555555555555555555555555555555555555555555555555555', 'RUNNING', 0, '{"id":"9e3779b1-0000-4000-8000-000000000001","seq":1,"name":"train-1","queue":"queue","share":"share-1","priority":5,"demand":[{"unit":"ml.g5.xlarge","quantity":1}],"workers":1,"trainingJobName":"train","maxRuntime":3600000000000,"strategy":{"attempts":1,"rules":[{"action":"EXIT","pattern":"*"}]},"status":"RUNNING","createdAt":"2023-11-14T22:13:20Z","updatedAt":"2023-11-14T22:13:20Z","current":{"run":1,"trainingJobName":"AWSBatchtrain0","trainingJobArn":"","scheduledAt":"2023-11-14T22:13:20Z","startedAt":"2023-11-14T22:13:20Z"},"token":"token-1","tokenHash":"5555555555555555555555555555555555555555555555555555555555555555"}', '', -62135596800000);
INSERT INTO jobs VALUES (2, '3c6ef362-0000-4000-8000-000000000002', 'queue', 'share-2', 'train-2', 'TRAIN-2', 1700000000000, 'token-2', '5555555555555555555555555555555555555555555555555555555555555555', 'RUNNABLE', 0, '{"id":"3c6ef362-0000-4000-8000-000000000002","seq":2,"name":"train-2","queue":"queue","share":"share-2","priority":5,"demand":[{"unit":"ml.g5.xlarge","quantity":1}],"workers":1,"trainingJobName":"train","maxRuntime":3600000000000,"strategy":{"attempts":1,"rules":[{"action":"EXIT","pattern":"*"}]},"status":"RUNNABLE","createdAt":"2023-11-14T22:13:20Z","updatedAt":"2023-11-14T22:13:20Z","token":"token-2","tokenHash":"5555555555555555555555555555555555555555555555555555555555555555"}', '', -62135596800000);
INSERT INTO jobs VALUES (3, 'daa66d13-0000-4000-8000-000000000003', 'queue', 'share-3', 'train-3', 'TRAIN-3', 1700000000000, 'token-3', '5555555555555555555555555555555555555555555555555555555555555555', 'RUNNABLE', 0, '{"id":"daa66d13-0000-4000-8000-000000000003","seq":3,"name":"train-3","queue":"queue","share":"share-3","priority":5,"demand":[{"unit":"ml.g5.xlarge","quantity":1}],"workers":1,"trainingJobName":"train","maxRuntime":3600000000000,"strategy":{"attempts":1,"rules":[{"action":"EXIT","pattern":"*"}]},"status":"RUNNABLE","createdAt":"2023-11-14T22:13:20Z","updatedAt":"2023-11-14T22:13:20Z","token":"token-3","tokenHash":"5555555555555555555555555555555555555555555555555555555555555555"}', '', -62135596800000);
INSERT INTO jobs VALUES (4, '78dde6c4-0000-4000-8000-000000000004', 'queue', 'share-4', 'train-4', 'TRAIN-4', 1700000000000, 'token-4', '5555555555555555555555555555555555555555555555555555555555555555', 'RUNNABLE', 0, '{"id":"78dde6c4-0000-4000-8000-000000000004","seq":4,"name":"train-4","queue":"queue","share":"share-4","priority":5,"demand":[{"unit":"ml.g5.xlarge","quantity":1}],"workers":1,"trainingJobName":"train","maxRuntime":3600000000000,"strategy":{"attempts":1,"rules":[{"action":"EXIT","pattern":"*"}]},"status":"RUNNABLE","createdAt":"2023-11-14T22:13:20Z","updatedAt":"2023-11-14T22:13:20Z","token":"token-4","tokenHash":"5555555555555555555555555555555555555555555555555555555555555555"}', '', -62135596800000);
INSERT INTO jobs VALUES (5, '17156075-0000-4000-8000-000000000005', 'queue', 'share-5', 'train-5', 'TRAIN-5', 1700000000000, 'token-5', '5555555555555555555555555555555555555555555555555555555555555555', 'FAILED', 1, '{"id":"17156075-0000-4000-8000-000000000005","seq":5,"name":"train-5","queue":"queue","share":"share-5","priority":5,"demand":[{"unit":"ml.g5.xlarge","quantity":1}],"workers":1,"trainingJobName":"train","maxRuntime":3600000000000,"strategy":{"attempts":1,"rules":[{"action":"EXIT","pattern":"*"}]},"status":"FAILED","createdAt":"2023-11-14T22:13:20Z","updatedAt":"2023-11-14T22:13:20Z","attempts":[{"run":1,"trainingJobName":"","trainingJobArn":"","stoppedAt":"2023-11-14T22:13:20Z","reason":"Received status from SageMaker: Training job stopped"}],"token":"token-5","tokenHash":"5555555555555555555555555555555555555555555555555555555555555555"}', '', -62135596800000);
INSERT INTO journal VALUES (1, 1700000000000, 'command', 'SubmitServiceJob', '9e3779b1-0000-4000-8000-000000000001', 'admin', '{"name":"train"}');
INSERT INTO journal VALUES (2, 1700000000000, 'state', 'RUNNABLE', '9e3779b1-0000-4000-8000-000000000001', '', NULL);
INSERT INTO journal VALUES (3, 1700000000000, 'command', 'SubmitServiceJob', '3c6ef362-0000-4000-8000-000000000002', 'admin', '{"name":"train"}');
INSERT INTO journal VALUES (4, 1700000000000, 'state', 'RUNNABLE', '3c6ef362-0000-4000-8000-000000000002', '', NULL);
INSERT INTO journal VALUES (5, 1700000000000, 'command', 'SubmitServiceJob', 'daa66d13-0000-4000-8000-000000000003', 'admin', '{"name":"train"}');
INSERT INTO journal VALUES (6, 1700000000000, 'state', 'RUNNABLE', 'daa66d13-0000-4000-8000-000000000003', '', NULL);
INSERT INTO journal VALUES (7, 1700000000000, 'command', 'SubmitServiceJob', '78dde6c4-0000-4000-8000-000000000004', 'admin', '{"name":"train"}');
INSERT INTO journal VALUES (8, 1700000000000, 'state', 'RUNNABLE', '78dde6c4-0000-4000-8000-000000000004', '', NULL);
INSERT INTO journal VALUES (9, 1700000000000, 'command', 'SubmitServiceJob', '17156075-0000-4000-8000-000000000005', 'admin', '{"name":"train"}');
INSERT INTO journal VALUES (10, 1700000000000, 'state', 'RUNNABLE', '17156075-0000-4000-8000-000000000005', '', NULL);
INSERT INTO payloads VALUES (1, 'pppppppppp');
INSERT INTO payloads VALUES (2, 'pppppppppp');
INSERT INTO payloads VALUES (3, 'pppppppppp');
INSERT INTO payloads VALUES (4, 'pppppppppp');
INSERT INTO payloads VALUES (5, 'pppppppppp');
INSERT INTO resources VALUES ('job-queue', '', 'queue', '{"name":"queue","priority":0,"state":"","status":"","environment":"environment","environmentOrder":0,"policy":"policy","createdAt":"2023-11-14T22:13:20Z"}');
INSERT INTO resources VALUES ('quota-share', 'queue', 'share-1', '{"queue":"queue","name":"share-1","limits":null,"sharing":"LEND_AND_BORROW","borrowLimit":-1,"weight":1,"inSharePreemption":false,"state":"","status":"","createdAt":"2023-11-14T22:13:20Z"}');
INSERT INTO resources VALUES ('scheduling-policy', '', 'policy', '{"name":"policy","idleAssignment":"FIFO","createdAt":"2023-11-14T22:13:20Z"}');
INSERT INTO resources VALUES ('service-environment', '', 'environment', '{"name":"environment","state":"ENABLED","status":"","limits":[{"unit":"ml.g5.xlarge","max":3}],"createdAt":"2023-11-14T22:13:20Z"}');
PRAGMA user_version = 2;
