import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { builtHearth } from '../../test/support/servers/built-hearth.ts';

let program = '';

interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

let folder = '';
before(async () => {
  program = await builtHearth();
  folder = mkdtempSync(join(tmpdir(), 'hearth-commands-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function launch(args: readonly string[], cwd = folder): ChildProcess {
  return spawn(process.execPath, [program, ...args], { cwd, stdio: 'pipe' });
}

async function run(args: readonly string[], input = ''): Promise<Outcome> {
  const child = launch(args);
  child.stdin!.end(input);
  const [out, err] = [collect(child.stdout!), collect(child.stderr!)];
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out: out(), err: err() };
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.on('data', (chunk) => {
    text += String(chunk);
  });
  return () => text;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  await eventually(what, condition);
}

const exit = (child: ChildProcess) =>
  new Promise<number | null>((resolve) =>
    child.exitCode !== null ? resolve(child.exitCode) : child.once('exit', resolve),
  );

/** Returns a port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Runs `hearth init`, and adds a file that moves the server to a free port. */
async function initialized(
  name: string,
  more = '',
): Promise<{ args: string[]; url: string; directory: string }> {
  const directory = join(folder, name);
  assert.equal((await run(['init', '-n', 'example.org', '-d', directory])).code, 0);
  const port = await freePort();
  const override = join(directory, 'override.yaml');
  writeFileSync(
    override,
    `listeners:\n  - { port: ${port}, type: http, bind_addresses: ["127.0.0.1"], resources: [{ names: [client] }] }\n${more}`,
  );
  return {
    args: ['-c', join(directory, 'homeserver.yaml'), '-c', override],
    url: `http://127.0.0.1:${port}`,
    directory,
  };
}

describe('hearth', () => {
  it('prints its version and its help', async () => {
    assert.match((await run(['--version'])).out, /^\d+\.\d+\.\d+\n$/);
    for (const args of [['--help'], ['serve', '--help'], ['register-user', '--help'], ['config', '--help']]) {
      const { code, out } = await run(args);
      assert.equal(code, 0);
      assert.match(out, /Usage: hearth/);
    }
    assert.equal((await run(['nonsense'])).code, 1);
    assert.match((await run(['register-user', '--nonsense'])).err, /see hearth register-user --help/);
    assert.match((await run(['config', 'check', '--nonsense'])).err, /see hearth config check --help/);
  });

  it('ends without an error message and with its own exit code when its output pipe is closed', async () => {
    const { args } = await initialized('unread');
    const good = args[1]!;
    const bad = join(folder, 'unread.yaml');
    writeFileSync(bad, 'a: 1\n');
    const commands: [args: string[], code: number][] = [
      [['config', 'docs'], 0],
      [['config', 'schema'], 0],
      [['config', 'explain', 'listeners'], 0],
      [['config', 'show', good], 0],
      [['config', 'check', good], 0],
      [['config', 'check', bad], 1],
      [['--help'], 0],
    ];
    for (const [command, expected] of commands) {
      const child = launch(command);
      child.stdout!.destroy();
      const err = collect(child.stderr!);
      const code = await new Promise((resolve) => child.once('close', resolve));
      assert.equal(code, expected, command.join(' '));
      assert.doesNotMatch(err(), /EPIPE|\n\s+at /);
    }
  });
});

describe('hearth init', () => {
  it('writes private files and never overwrites a configuration', async () => {
    const { directory } = await initialized('init');
    const file = join(directory, 'homeserver.yaml');
    const text = readFileSync(file, 'utf8');
    assert.match(text, /^server_name: "?example.org"?$/m);
    for (const name of ['homeserver.yaml', 'example.org.signing.key']) {
      assert.equal(statSync(join(directory, name)).mode & 0o077, 0, name);
    }
    const again = await run(['init', '-n', 'other.org', '-d', directory]);
    assert.equal(again.code, 1);
    assert.match(again.err, /exists already/);
    assert.equal(readFileSync(file, 'utf8'), text);
  });

  it('refuses an invalid server name and leaves no configuration behind', async () => {
    const { code, err } = await run(['init', '-n', 'Not a name', '-d', 'bad']);
    assert.equal(code, 1);
    assert.match(err, /server_name/);
    assert.doesNotMatch(err, /\n\s+at /);
    assert.equal(existsSync(join(folder, 'bad', 'homeserver.yaml')), false);
  });
});

describe('hearth serve', () => {
  it('serves, registers users, reloads and stops gracefully [option: listeners[].port, soft_file_limit, log_config, registration_shared_secret_path]', {
    timeout: 60_000,
  }, async () => {
    const pidFile = join(folder, 'hearth.pid');
    const logFile = join(folder, 'hearth.log');
    const logConfig = join(folder, 'log.yaml');
    const logEvery = (level: string) => `
handlers: { file: { filename: ${JSON.stringify(logFile)} }, console: { stream: ext://sys.stdout, level: INFO } }
loggers: { http: { level: ${level} } }
root: { level: INFO, handlers: [file, console] }
`;
    writeFileSync(logConfig, logEvery('INFO'));
    const { args, url } = await initialized(
      'serve',
      `pid_file: ${JSON.stringify(pidFile)}\nlog_config: ${JSON.stringify(logConfig)}\nsoft_file_limit: 700\n`,
    );
    const child = launch(['serve', ...args]);
    const out = collect(child.stdout!);
    try {
      await until(() => out().includes(url), 'the server');
      assert.match(out(), /register-user -c .* --admin\n/);
      assert.match(out(), /Registration by clients is closed/);
      assert.match(out(), /cannot be changed later/);
      assert.equal(existsSync(pidFile), false);
      assert.match(readFileSync(`/proc/${child.pid}/limits`, 'utf8'), /^Max open files +700 /m);

      const registration = await run(['register-user', ...args, '-u', 'alice', '--admin'], 'correct horse\n');
      assert.deepEqual(
        [registration.code, registration.out],
        [
          0,
          `Registered @alice:example.org as a server administrator.\nTo log in, enter ${url} as the homeserver in a Matrix client.\n`,
        ],
        registration.err,
      );
      const twice = await run(['register-user', ...args, '-u', 'alice'], 'correct horse\n');
      assert.equal(twice.code, 1);
      assert.match(twice.err, /^hearth: the user name alice is taken/);
      const nameless = await run(['register-user', ...args], '');
      assert.match(nameless.err, /give the name with -u and the password with --password-file/);
      assert.doesNotMatch(out() + registration.err + twice.err, /correct horse/);
      const login = await fetch(`${url}/_matrix/client/v3/login`, {
        method: 'POST',
        body: JSON.stringify({
          type: 'm.login.password',
          identifier: { type: 'm.id.user', user: 'alice' },
          password: 'correct horse',
        }),
      });
      assert.equal(login.status, 200);

      const file = args.at(-1)!;
      const more = 'caches: { global_factor: 2 }\nmax_avatar_size: 1M\n';
      writeFileSync(file, readFileSync(file, 'utf8') + more);
      assert.doesNotMatch(readFileSync(logFile, 'utf8'), /"msg":"Request"/);
      writeFileSync(logConfig, logEvery('DEBUG'));
      child.kill('SIGHUP');
      await until(() => out().includes('reloaded'), 'the reload');
      await fetch(`${url}/health`);
      await until(() => /"logger":"http".*"msg":"Request"/.test(readFileSync(logFile, 'utf8')), 'the log');
      assert.doesNotMatch(out(), /"msg":"Request"/);
      assert.match(out(), /"applied":\["caches.global_factor"\],"needRestart":\["max_avatar_size"\]/);
      writeFileSync(file, 'server_name: [');
      child.kill('SIGHUP');
      await until(() => out().includes('Reload failed'), 'the refusal');
      assert.equal((await fetch(`${url}/health`)).status, 200);
      child.kill('SIGTERM');
      assert.equal(await exit(child), 0);
      assert.equal(existsSync(pidFile), false);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('lists all errors of a configuration', async () => {
    mkdirSync(join(folder, 'broken'));
    writeFileSync(join(folder, 'broken', 'a.yaml'), 'server_name: UPPER\nlisteners:\n  - port: x\n');
    const { code, err } = await run(['serve', '-c', join(folder, 'broken')]);
    assert.equal(code, 1);
    assert.match(err, /a\.yaml:1:14: server_name/);
    assert.match(err, /a\.yaml:3:11: listeners\[0\]\.port/);
  });

  it('goes to the background once it serves [option: daemonize, print_pidfile, pid_file]', {
    timeout: 60_000,
  }, async () => {
    const pidFile = join(folder, 'daemon.pid');
    const more = `pid_file: ${JSON.stringify(pidFile)}\n`;
    const { args, url } = await initialized('daemon', more);
    const options = join(folder, 'daemon.yaml');
    writeFileSync(options, 'daemonize: true\nprint_pidfile: true\n');
    for (const how of [
      ['-D', '--print-pidfile'],
      ['-c', options],
    ]) {
      const { code, out, err } = await run(['serve', ...args, ...how]);
      assert.deepEqual([code, out], [0, `${pidFile}\n`], err);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      try {
        assert.equal((await fetch(`${url}/health`)).status, 200);
      } finally {
        process.kill(pid, 'SIGTERM');
      }
      await until(() => !existsSync(pidFile), 'the end of the daemon');
    }
  });

  it('logs in the background to the files of log_config alone, and prints why it did not start [option: daemonize, log_config]', {
    timeout: 60_000,
  }, async () => {
    const cwd = join(folder, 'quiet');
    mkdirSync(cwd);
    const pidFile = join(cwd, 'daemon.pid');
    const logFile = join(cwd, 'mine.log');
    const logConfig = join(cwd, 'log.yaml');
    writeFileSync(
      logConfig,
      `handlers: { file: { filename: ${JSON.stringify(logFile)} } }\nroot: { level: INFO, handlers: [file] }\n`,
    );
    const { args, url } = await initialized(
      'quiet-server',
      `pid_file: ${JSON.stringify(pidFile)}\nlog_config: ${JSON.stringify(logConfig)}\n`,
    );
    const inBackground = async () => {
      const child = launch(['serve', ...args, '-D'], cwd);
      const [out, err] = [collect(child.stdout!), collect(child.stderr!)];
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
      return [code, out(), err()] as const;
    };
    assert.deepEqual(await inBackground(), [0, '', '']);
    const pid = Number(readFileSync(pidFile, 'utf8'));
    try {
      assert.equal((await fetch(`${url}/health`)).status, 200);
      assert.match(readFileSync(logFile, 'utf8'), /"msg":"Serving"/);
      const [code, out, err] = await inBackground();
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /is in use by another server\nhearth: the server did not start: see above\n$/);
      assert.equal(existsSync(join(cwd, 'homeserver.log')), false);
    } finally {
      process.kill(pid, 'SIGTERM');
    }
    await until(() => !existsSync(pidFile), 'the end of the daemon');
  });
});
