import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { type LoopbackServer, serveOnLoopback } from '../support/network/loopback.ts';
import { configure, type ServerProcess, startProcess } from './server-process.ts';

interface ErrorEvent {
  readonly level: string;
  readonly environment: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly exception: { readonly values: readonly { readonly type: string; readonly value: string }[] };
}

/** Code of the process, not of a module, that throws an error when the process receives SIGUSR2. */
const failingCode = `process.on('SIGUSR2', () => { throw new RangeError('the head of @ann:example.org'); });`;

describe('error reports and log lines of a running server', () => {
  let folder: string;
  let service: LoopbackServer;
  let server: ServerProcess | undefined;
  let start: () => Promise<ServerProcess>;
  const events: ErrorEvent[] = [];
  const bodies: string[] = [];

  before(async () => {
    service = await serveOnLoopback(async (request, response) => {
      const body = await text(request);
      bodies.push(body);
      if (request.url === '/api/7/envelope/') events.push(JSON.parse(body.split('\n')[2]!));
      response.end('{}');
    });
    folder = mkdtempSync(join(tmpdir(), 'hearth-error-reports-'));
    writeFileSync(join(folder, 'failing.mjs'), failingCode);
    const logConfig = join(folder, 'log.yaml');
    writeFileSync(logConfig, 'loggers: { http: { level: DEBUG } }\n');
    const paths = configure(folder, {
      log_config: logConfig,
      sentry: { dsn: `http://key@127.0.0.1:${service.port}/7`, environment: 'trial' },
      server_context: 'test servers',
    });
    start = () => startProcess(paths, { NODE_OPTIONS: `--import=${join(folder, 'failing.mjs')}` });
    server = await start();
  });
  after(async () => {
    await server?.kill();
    await service.close();
    rmSync(folder, { recursive: true });
  });

  const logLines = () =>
    server!
      .log()
      .split('\n')
      // The last line may be incomplete.
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

  it('reports a failed request with the environment and the context of the server, but without ids [option: sentry.dsn, sentry.environment, server_context]', async () => {
    const rename = (table: string, name: string) => {
      const database = new DatabaseSync(join(folder, 'homeserver.db'), { timeout: 60_000 });
      database.exec(`alter table ${table} rename to ${name}`);
      database.close();
    };
    rename('users', 'absent_users');
    const { status } = await server!.api('GET', '/_matrix/client/v3/profile/@ann:example.org');
    assert.equal(status, 500);
    rename('absent_users', 'users');
    const [event] = await eventually('an event', () => (events.length > 0 ? events : undefined));
    assert.equal(event!.level, 'error');
    assert.equal(event!.environment, 'trial');
    assert.equal(event!.tags['server_context'], 'test servers');
    assert.equal(event!.tags['route'], '/_proto/client/v3/profile/:userId');
    assert.match(JSON.stringify(event!.exception), /no such table/);
    assert.doesNotMatch(bodies.join(), /@ann/);
    for (const line of logLines()) assert.equal(line['server_context'], 'test servers');
  });

  it('logs requests and their errors as JSON, with no field that docs/configuration/logging.md does not name', async () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/configuration/logging.md'), 'utf8');
    const [, table] = guide.split('## Fields of a line');
    const rows = [...table!.matchAll(/^\| (`[^|]+) \|/gm)].map(([, names]) => names!);
    const documented = rows.flatMap((names) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
    assert.ok(documented.length > 15);
    const requestLines = await eventually('the line of the failed request', () => {
      const lines = logLines().filter(({ request }) => request !== undefined);
      const isComplete =
        lines.some(({ status }) => status === 500) &&
        lines.some(({ level, err }) => level === 'error' && err !== undefined);
      return isComplete ? lines : undefined;
    });
    for (const line of requestLines)
      assert.deepEqual(
        Object.keys(line).filter((name) => !documented.includes(name)),
        [],
        JSON.stringify(line),
      );
    const request = requestLines.find(({ status }) => status === 500)!;
    for (const [name, type] of Object.entries({
      level: 'string',
      time: 'string',
      msg: 'string',
      logger: 'string',
      request: 'string',
      method: 'string',
      url: 'string',
      status: 'number',
      ms: 'number',
      ip: 'string',
    }))
      assert.equal(typeof request[name], type, `${name} in ${JSON.stringify(request)}`);
    const errorLine = requestLines.find(({ level, err }) => level === 'error' && err !== undefined)!;
    const error = errorLine['err'] as Readonly<Record<string, unknown>>;
    for (const name of ['name', 'message', 'stack']) assert.equal(typeof error[name], 'string', name);
  });

  it('sends a report of an uncaught exception before the process exits', async () => {
    const fail = async () => {
      const ended = once(server!.process, 'exit');
      server!.process.kill('SIGUSR2');
      assert.deepEqual(await ended, [1, null]);
      return events.at(-1)!;
    };
    let last = await fail();
    // The process waits at most three seconds for the report, which is not always enough on a busy machine.
    for (let remainingAttempts = 4; remainingAttempts > 0 && last.level !== 'fatal'; remainingAttempts--) {
      server = await start();
      last = await fail();
    }
    assert.equal(last.level, 'fatal');
    assert.deepEqual(
      last.exception.values.map(({ type, value }) => [type, value]),
      [['RangeError', 'the head of <id>']],
    );
  });
});
