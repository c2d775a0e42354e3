import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Agent, get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { eventually } from '../clients/eventually.ts';
import { freePort } from '../support/network/free-port.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';

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
  const env = { ...process.env, XDG_CONFIG_HOME: join(folder, 'settings') };
  return spawn(process.execPath, [program, ...args], { cwd, env, stdio: 'pipe' });
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

const exited = (child: ChildProcess) =>
  new Promise<number | null>((resolve) =>
    child.exitCode !== null ? resolve(child.exitCode) : child.once('exit', resolve),
  );

/** Self-signed certificates for tests. */
const certificates = new URL('../fixtures/tls/', import.meta.url);

/**
 * Sends requests over new TLS connections until the server has the second certificate.
 * @throws when a request is not answered with 200
 */
async function requestUntilRenewed(port: number): Promise<void> {
  const ca = ['first', 'second'].map((name) => readFileSync(new URL(`${name}.cert.pem`, certificates)));
  const certificateName = () =>
    new Promise<string>((resolve, reject) => {
      get(`https://127.0.0.1:${port}/health`, { agent: new Agent({ ca }) }, (response) => {
        const { subject } = (response.socket as TLSSocket).getPeerCertificate();
        response.resume().once('end', () => {
          if (response.statusCode === 200) resolve(String(subject.CN));
          else reject(new Error(`status ${response.statusCode}`));
        });
      }).once('error', reject);
    });
  while ((await certificateName()) !== 'second');
}

/** Runs `hearth init`, and adds a file that moves the server to a free port. */
async function initialized(
  name: string,
  more = '',
  listeners = '',
): Promise<{ args: string[]; url: string; directory: string }> {
  const directory = join(folder, name);
  assert.equal((await run(['init', '-n', 'example.org', '-d', directory])).code, 0);
  const port = await freePort();
  const override = join(directory, 'override.yaml');
  writeFileSync(
    override,
    `listeners:\n  - { port: ${port}, type: http, bind_addresses: ["127.0.0.1"], resources: [{ names: [client] }] }\n${listeners}${more}`,
  );
  return {
    args: ['-c', join(directory, 'homeserver.yaml'), '-c', override],
    url: `http://127.0.0.1:${port}`,
    directory,
  };
}

describe('hearth', () => {
  it('prints its version and its help, and names its commands in errors as they can be typed', async () => {
    assert.match((await run(['--version'])).out, /^\d+\.\d+\.\d+\n$/);
    for (const args of [['--help'], ['serve', '--help'], ['register-user', '--help'], ['config', '--help']]) {
      const { code, out } = await run(args);
      assert.equal(code, 0);
      assert.match(out, /Usage: hearth/);
    }
    assert.equal((await run(['nonsense'])).code, 1);
    assert.match(
      (await run(['register-user', '--nonsense'])).err,
      /see npm run hearth -- register-user --help/,
    );
    assert.match(
      (await run(['config', 'check', '--nonsense'])).err,
      /see npm run hearth -- config check --help/,
    );
  });

  it('ends with its usual exit code and without an error message when its output pipe is closed', async () => {
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
  it('hearth init writes files that only their owner can read, and never overwrites a configuration', async () => {
    const { directory } = await initialized('init');
    const file = join(directory, 'homeserver.yaml');
    const text = readFileSync(file, 'utf8');
    assert.match(text, /^server_name: "?example.org"?$/m);
    for (const name of ['homeserver.yaml', 'example.org.signing.key']) {
      assert.equal(statSync(join(directory, name)).mode & 0o077, 0, name);
    }
    const secondInit = await run(['init', '-n', 'other.org', '-d', directory]);
    assert.equal(secondInit.code, 1);
    assert.match(secondInit.err, /exists already; nothing was changed\. .* another directory with -d/);
    assert.equal(readFileSync(file, 'utf8'), text);
  });

  it('hearth init refuses an invalid server name, and leaves no configuration behind', async () => {
    const { code, err } = await run(['init', '-n', 'Not a name', '-d', 'bad']);
    assert.equal(code, 1);
    assert.match(err, /server_name/);
    assert.doesNotMatch(err, /\n\s+at /);
    assert.equal(existsSync(join(folder, 'bad', 'homeserver.yaml')), false);
  });
});

describe('hearth doctor', () => {
  it('hearth doctor exits with code 1 for errors and, given --strict, for warnings, and prints JSON given --json', async () => {
    const directory = join(folder, 'doctor');
    assert.equal((await run(['init', '-n', 'localhost', '-d', directory])).code, 0);
    const overrideFile = join(directory, 'more.yaml');
    // Another server may run on the default port.
    const listener = `{ port: ${await freePort()}, type: http, bind_addresses: ["127.0.0.1"], resources: [{ names: [client] }] }`;
    writeFileSync(overrideFile, `trusted_key_servers: []\nlisteners: [${listener}]\n`);
    const files = ['-c', join(directory, 'homeserver.yaml'), '-c', overrideFile];
    const [plain, strict] = await Promise.all([
      run(['doctor', ...files]),
      run(['doctor', ...files, '--strict', '--json']),
    ]);
    assert.equal(plain.code, 0, plain.err);
    assert.match(plain.out, /! No server answers at .*\n {6}→ npm run hearth -- serve -c /);
    assert.equal(strict.code, 1, strict.err);
    assert.equal(JSON.parse(strict.out).errors, 0);
    writeFileSync(overrideFile, 'listeners: 1\n');
    const broken = await run(['doctor', ...files]);
    assert.equal(broken.code, 1);
    assert.match(broken.out, /✗ .*more\.yaml:1:12: listeners/);
  });
});

describe('hearth serve', () => {
  it('serves, registers users, reloads its configuration and certificate while it answers requests, and stops gracefully [option: listeners[].port, soft_file_limit, log_config, registration_shared_secret_path]', {
    timeout: 600_000,
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
    const service = join(folder, 'irc.yaml');
    const writeRegistration = (url: string | null) => {
      const tokens = { as_token: 'as', hs_token: 'hs' };
      const registration = { id: 'irc', url, ...tokens, sender_localpart: 'irc', namespaces: {} };
      writeFileSync(service, JSON.stringify(registration));
    };
    writeRegistration(null);
    const tlsPort = await freePort();
    const certificate = join(folder, 'cert.pem');
    const key = join(folder, 'key.pem');
    const installCertificate = (name: string) => {
      cpSync(new URL(`${name}.cert.pem`, certificates), certificate);
      cpSync(new URL(`${name}.key.pem`, certificates), key);
    };
    installCertificate('first');
    const { args, url } = await initialized(
      'serve',
      `pid_file: ${JSON.stringify(pidFile)}\nlog_config: ${JSON.stringify(logConfig)}\nsoft_file_limit: 700\npublic_baseurl: https://chat.example.org/\napp_service_config_files: [${JSON.stringify(service)}]\ntls_certificate_path: ${JSON.stringify(certificate)}\ntls_private_key_path: ${JSON.stringify(key)}\n`,
      `  - { port: ${tlsPort}, type: http, tls: true, bind_addresses: ["127.0.0.1"], resources: [{ names: [health] }] }\n`,
    );
    const child = launch(['serve', ...args]);
    const out = collect(child.stdout!);
    try {
      await until(() => out().includes('cannot be changed later'), 'the server');
      assert.ok(out().includes(url));
      assert.match(out(), /register-user -c .* --admin\n/);
      assert.match(out(), /Registration by clients is closed/);
      assert.match(out(), /registration_requires_token.*\n {2}npm run hearth -- token create -c /);
      assert.equal(existsSync(pidFile), false);
      assert.match(readFileSync(`/proc/${child.pid}/limits`, 'utf8'), /^Max open files +700 /m);

      const registration = await run(['register-user', ...args, '-u', 'alice', '--admin'], 'correct horse\n');
      assert.deepEqual(
        [registration.code, registration.out],
        [
          0,
          `Registered @alice:example.org as a server administrator.\nTo log in, enter https://chat.example.org/ as the homeserver in a Matrix client.\n`,
        ],
        registration.err,
      );
      const secondRegistration = await run(['register-user', ...args, '-u', 'alice'], 'correct horse\n');
      assert.equal(secondRegistration.code, 1);
      assert.match(secondRegistration.err, /^hearth: the user name alice is taken/);
      const nameless = await run(['register-user', ...args], '');
      assert.match(nameless.err, /give the name with -u and the password with --password-file/);
      assert.doesNotMatch(out() + registration.err + secondRegistration.err, /correct horse/);
      const login = await fetch(`${url}/_matrix/client/v3/login`, {
        method: 'POST',
        body: JSON.stringify({
          type: 'm.login.password',
          identifier: { type: 'm.id.user', user: 'alice' },
          password: 'correct horse',
        }),
      });
      assert.equal(login.status, 200);

      const adminLogin = await run(['login', ...args, '-u', 'alice'], 'correct horse\n');
      assert.deepEqual([adminLogin.code, adminLogin.err], [0, '']);
      assert.equal(statSync(join(folder, 'settings', 'hearth', 'logins.json')).mode & 0o777, 0o600);
      const users = await run(['user', 'list', ...args]);
      assert.match(users.out, /^User .*\n@alice:example\.org +alice +yes +active /, users.err);

      const file = args.at(-1)!;
      const more = 'caches: { global_factor: 2 }\nmax_avatar_size: 1M\n';
      writeFileSync(file, readFileSync(file, 'utf8') + more);
      assert.doesNotMatch(readFileSync(logFile, 'utf8'), /"msg":"Request"/);
      writeFileSync(logConfig, logEvery('DEBUG'));
      writeRegistration('http://127.0.0.1:1');
      const load = Promise.all([requestUntilRenewed(tlsPort), requestUntilRenewed(tlsPort)]);
      installCertificate('second');
      child.kill('SIGHUP');
      await until(() => out().includes('reloaded'), 'the reload');
      await load;
      await fetch(`${url}/health`);
      await until(() => /"logger":"http".*"msg":"Request"/.test(readFileSync(logFile, 'utf8')), 'the log');
      assert.doesNotMatch(out(), /"msg":"Request"/);
      assert.match(out(), /"services":\["irc"\],"msg":"The registration files .* restart the server/);
      assert.match(out(), /"applied":\["caches.global_factor"\],"needRestart":\["max_avatar_size"\]/);
      const { access_token: token } = (await login.json()) as { access_token: string };
      const authorization = `Bearer ${token}`;
      const effective = await fetch(`${url}/_synapse/admin/v1/effective_configuration`, {
        headers: { authorization },
      });
      const { options } = (await effective.json()) as { options: { name: string; source: string }[] };
      assert.deepEqual(
        ['caches.global_factor', 'max_avatar_size'].map(
          (option) => options.find(({ name }) => name === option)?.source,
        ),
        ['file', 'default'],
      );
      writeFileSync(file, 'server_name: [');
      child.kill('SIGHUP');
      await until(() => out().includes('Reload failed'), 'the refusal');
      assert.equal((await fetch(`${url}/health`)).status, 200);
      child.kill('SIGTERM');
      assert.equal(await exited(child), 0);
      assert.equal(existsSync(pidFile), false);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('hearth serve lists each error of an invalid configuration', async () => {
    mkdirSync(join(folder, 'broken'));
    writeFileSync(join(folder, 'broken', 'a.yaml'), 'server_name: UPPER\nlisteners:\n  - port: x\n');
    const { code, err } = await run(['serve', '-c', join(folder, 'broken')]);
    assert.equal(code, 1);
    assert.match(err, /a\.yaml:1:14: server_name/);
    assert.match(err, /a\.yaml:3:11: listeners\[0\]\.port/);
  });

  it('hearth serve continues in the background once it answers requests [option: daemonize, print_pidfile, pid_file]', {
    timeout: 600_000,
  }, async () => {
    const pidFile = join(folder, 'daemon.pid');
    const more = `pid_file: ${JSON.stringify(pidFile)}\n`;
    const { args, url } = await initialized('daemon', more);
    const options = join(folder, 'daemon.yaml');
    writeFileSync(options, 'daemonize: true\nprint_pidfile: true\n');
    for (const flags of [
      ['-D', '--print-pidfile'],
      ['-c', options],
    ]) {
      const { code, out, err } = await run(['serve', ...args, ...flags]);
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

  it('writes its log only to the files of log_config when it runs in the background, and prints why it did not start [option: daemonize, log_config]', {
    timeout: 600_000,
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
