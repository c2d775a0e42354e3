import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { createLogger, LoggedErrors, type Logger, parseDsn, silentLogger } from '../observability/index.ts';
import type { FetchedResponse, OutboundRequest } from '../outbound/index.ts';
import { systemRandomness } from '../randomness.ts';
import { ErrorReports, reportLimits } from './error-reports.ts';

interface Sent {
  readonly url: string;
  readonly request: OutboundRequest;
}

describe('ErrorReports', () => {
  let clock: ManualClock;
  let log: Logger;
  let lines: string[];
  let sent: Sent[];
  let answer: () => Promise<Pick<FetchedResponse, 'status' | 'headers'>>;
  let reports: ErrorReports;

  beforeEach(() => {
    clock = manualClock();
    lines = [];
    sent = [];
    answer = async () => ({ status: 200, headers: {} });
    const loggedErrors = new LoggedErrors();
    log = createLogger({
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
      context: 'staging',
      loggedErrors,
    });
    const fetch = async (url: URL, request: OutboundRequest) => {
      sent.push({ url: url.href, request });
      return { ...(await answer()), url, body: Buffer.alloc(0) };
    };
    reports = new ErrorReports(
      {
        project: parseDsn('https://key@sentry.example.org/prefix/7')!,
        origin: { release: 'hearth@1', serverName: 'example.org', environment: 'live', context: 'staging' },
        http: { fetch },
        clock,
        randomness: systemRandomness,
        log: silentLogger,
      },
      loggedErrors,
    );
  });

  const settle = async () => {
    for (let count = 0; count < 5; count += 1) await turn();
  };
  const eventIn = ({ request }: Sent) => JSON.parse(String(request.body).split('\n')[2]!);

  it('sends a logged error with scrubbed texts, its logger, method and route, and no other field of the log line', async () => {
    const cause = new Error('the token syt_abc_def_0123456789 of @ann:example.org');
    const error = Object.assign(new TypeError('bad body "hello you"', { cause }), { secret: 'hunter2' });
    log
      .child({ logger: 'http', request: 'GET-1' })
      .error(
        { err: error, method: 'PUT', route: '/x/{userId}', url: '/x/@ann:b', user: '@ann:b' },
        'Request failed',
      );
    await settle();
    const [{ url, request }] = sent as [Sent];
    assert.equal(url, 'https://sentry.example.org/prefix/api/7/envelope/');
    assert.match(request.headers!['x-sentry-auth']!, /sentry_version=7.*sentry_key=key/);
    const [header, item, event] = String(request.body).split('\n') as [string, string, string];
    assert.deepEqual(Object.keys(JSON.parse(header)), ['event_id', 'sent_at']);
    assert.equal(JSON.parse(item).length, Buffer.byteLength(event));
    const { exception, ...rest } = JSON.parse(event);
    assert.match(rest.event_id, /^[0-9a-f]{32}$/);
    assert.deepEqual(
      { ...rest, event_id: '' },
      {
        event_id: '',
        timestamp: clock.now() / 1000,
        platform: 'node',
        level: 'error',
        logger: 'http',
        release: 'hearth@1',
        server_name: 'example.org',
        environment: 'live',
        logentry: { formatted: 'Request failed' },
        tags: { logger: 'http', method: 'PUT', route: '/x/{userId}', server_context: 'staging' },
        contexts: { runtime: { name: 'node', version: process.versions.node } },
      },
    );
    assert.deepEqual(
      exception.values.map(({ type, value }: { type: string; value: string }) => [type, value]),
      [
        ['Error', 'the token <secret> of <id>'],
        ['TypeError', 'bad body "…"'],
      ],
    );
    const frames = exception.values[1].stacktrace.frames;
    assert.equal(frames.at(-1).filename, 'src/kernel/error-reports/error-reports.test.ts');
    assert.doesNotMatch(String(request.body), /ann|hunter2|hello|syt_/);
    assert.equal(JSON.parse(lines[0]!).server_context, 'staging');
  });

  it('reports no lines of an error message as frames of its stack', async () => {
    const text = 'failed for\n    at whispered (secret.ts:1:1)\n    at ann.ts:2:2';
    const changed = new Error(text);
    changed.message = 'changed';
    changed.stack = changed.stack!.replace(text, `${text}\n`);
    for (const err of [new Error(text), changed]) {
      log.error({ err }, 'text');
      await settle();
      const [{ stacktrace }] = eventIn(sent.at(-1)!).exception.values;
      assert.equal(stacktrace.frames.at(-1).filename, 'src/kernel/error-reports/error-reports.test.ts');
      assert.doesNotMatch(JSON.stringify(stacktrace), /secret|whispered|ann/);
      clock.advance(reportLimits.repeated);
    }
    assert.equal(sent.length, 2);
  });

  it('sends neither warnings nor log lines without an error object', async () => {
    log.warn({ err: new Error('a warning') }, 'text');
    log.error({ reason: 'something' }, 'text');
    log.error('text');
    await settle();
    assert.deepEqual(sent, []);
  });

  it('sends errors from the same place in the code at most once a minute', async () => {
    const fail = () => log.error({ err: new Error('again') }, 'text');
    for (let count = 0; count < 3; count += 1) fail();
    await settle();
    assert.equal(sent.length, 1);
    clock.advance(reportLimits.repeated);
    for (let count = 0; count < 2; count += 1) fail();
    await settle();
    assert.equal(sent.length, 2);
  });

  it('waits as long as Retry-After of a failing service says, drops an event after three attempts, and bounds its queue', async () => {
    answer = async () => ({ status: 429, headers: { 'retry-after': '5' } });
    for (let count = 0; count < 200; count += 1)
      log.error({ err: new Error('text') }, `problem ${'a'.repeat(count)}`);
    await settle();
    assert.equal(sent.length, 1);
    clock.advance(4_999);
    await settle();
    assert.equal(sent.length, 1);
    clock.advance(1);
    await settle();
    assert.equal(sent.length, 2);
    answer = () => Promise.reject(new Error('connect ECONNREFUSED'));
    clock.advance(5_000);
    await settle();
    assert.equal(sent.length, 3);
    answer = async () => ({ status: 200, headers: {} });
    clock.advance(reportLimits.backoff);
    await settle();
    const ids = sent.map((report) => eventIn(report).event_id);
    assert.equal(new Set(ids.slice(0, 3)).size, 1);
    assert.equal(sent.length, 3 + reportLimits.maxWaiting - 1);
  });

  it('aborts the request in progress when it is closed', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    answer = () => promise;
    log.error({ err: new Error('text') }, 'text');
    await settle();
    const closed = reports.close();
    assert.ok(sent[0]!.request.signal!.aborted);
    reject(new Error('aborted'));
    await closed;
    log.error({ err: new Error('later') }, 'another');
    await settle();
    assert.equal(sent.length, 1);
  });

  it('sends a fatal error that waits behind another report before close() resolves', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    answer = () => promise;
    log.error({ err: new Error('text') }, 'text');
    log.fatal({ err: new Error('lost') }, 'Another server has taken over the database');
    await settle();
    answer = async () => ({ status: 200, headers: {} });
    const closed = reports.close();
    reject(new Error('connection reset'));
    await closed;
    assert.deepEqual(
      sent.map((report) => eventIn(report).level),
      ['error', 'fatal'],
    );
  });

  it('drops a fatal error that cannot be sent within three seconds after close()', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    answer = () => promise;
    log.fatal({ err: new Error('lost') }, 'Another server has taken over the database');
    await settle();
    const closed = reports.close();
    const { aborted } = sent[0]!.request.signal!;
    clock.advance(reportLimits.closeTimeout);
    assert.deepEqual([aborted, sent[0]!.request.signal!.aborted], [false, true]);
    reject(new Error('aborted'));
    await closed;
  });
});

describe('parseDsn', () => {
  it('reads the URL and public key of a Sentry project, and returns undefined for other texts', () => {
    const read = (dsn: string) => {
      const project = parseDsn(dsn);
      return project && [project.url.href, project.publicKey];
    };
    assert.deepEqual(read('https://abc@o1.example.org/42'), [
      'https://o1.example.org/api/42/envelope/',
      'abc',
    ]);
    assert.deepEqual(read('http://abc:secret@localhost:9000/a/b/42'), [
      'http://localhost:9000/a/b/api/42/envelope/',
      'abc',
    ]);
    for (const text of [
      '',
      'sentry',
      'https://o1.example.org/42',
      'https://abc@o1.example.org',
      'ftp://a@b/1',
    ])
      assert.equal(read(text), undefined, text);
  });
});
