import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { initialize } from '../../src/commands/init.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';

let program = '';
const listeners = (port: number) =>
  `listeners: [{ port: ${port}, type: http, bind_addresses: ["127.0.0.1"], resources: [{ names: [client] }] }]\n`;

const tlsListener = 'listeners: [{ port: 0, type: http, tls: true, bind_addresses: ["127.0.0.1"] }]';

let folder = '';
before(async () => {
  program = await builtHearth();
  folder = mkdtempSync(join(tmpdir(), 'hearth-start-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command until it ends; stops a server as soon as it serves. */
async function run(args: readonly string[], input = '') {
  const child = spawn(process.execPath, [program, ...args], { cwd: folder, stdio: 'pipe' });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
    // A second signal would end the process at once.
    if (out.includes('Hearth serves') && !child.killed) child.kill('SIGTERM');
  });
  child.stderr.on('data', (chunk) => {
    err += String(chunk);
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, err };
}

/** Runs a command that takes its standard input for a terminal. @param answers the answer to each prompt, in order */
async function runAtTerminal(
  args: readonly string[],
  answers: readonly (readonly [prompt: string, answer: string])[],
) {
  const terminal = 'data:text/javascript,process.stdin.isTTY = true';
  const command = ['--import', terminal, program, ...args];
  const child = spawn(process.execPath, command, { cwd: folder, stdio: 'pipe' });
  const out = text(child.stdout);
  let err = '';
  let searchedLength = 0;
  let answerCount = 0;
  child.stderr.on('data', (chunk) => {
    err += String(chunk);
    const [prompt, answer] = answers[answerCount] ?? [];
    if (prompt === undefined || !err.includes(prompt, searchedLength)) return;
    searchedLength = err.length;
    answerCount += 1;
    child.stdin.write(`${answer}\n`);
    if (answerCount === answers.length) child.stdin.end();
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out: await out, err };
}

/** Starts a server with a new configuration and an override file. `DIR` in this file stands for the directory. */
async function serve(name: string, more: string, prepare: (directory: string) => void = () => {}) {
  const directory = join(folder, name);
  const file = initialize({ serverName: 'example.org', directory }, systemRandomness);
  const override = join(directory, 'override.yaml');
  const options = more.replaceAll('DIR', directory);
  writeFileSync(override, options.includes('listeners:') ? options : listeners(0) + options);
  prepare(directory);
  return {
    directory,
    args: ['-c', file, '-c', override],
    ...(await run(['serve', '-c', file, '-c', override])),
  };
}

describe('hearth serve that cannot start', () => {
  const failures: readonly [string, string, RegExp, ((directory: string) => void)?][] = [
    [
      'names a database file that is not a database',
      '',
      /^hearth: cannot open the database \S+homeserver\.db: file is not a database\n$/,
      (directory) => writeFileSync(join(directory, 'homeserver.db'), 'This is a letter. '.repeat(100)),
    ],
    [
      'names a database in a missing directory',
      'database: { name: sqlite3, args: { database: DIR/none/homeserver.db } }',
      /^hearth: cannot open the database \S+none\/homeserver\.db: unable to open database file\n$/,
    ],
    [
      'reports a PostgreSQL server that does not answer',
      'database: { name: psycopg2, args: { host: 127.0.0.1, port: 1, user: hearth, password: secret, dbname: x } }',
      /^hearth: cannot open the PostgreSQL database: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    ],
    [
      'names an invalid signing key file',
      '',
      /^hearth: cannot use the signing key file \S+example\.org\.signing\.key: Line 1: expected [^\n]+\n$/,
      (directory) => writeFileSync(join(directory, 'example.org.signing.key'), 'nonsense\n'),
    ],
    [
      'reports a media directory below a file',
      'media_store_path: DIR/homeserver.yaml/media',
      /^hearth: ENOTDIR: not a directory, mkdir '\S+homeserver\.yaml\/media\/incoming'\n$/,
    ],
    [
      'names a missing file of federation_custom_ca_list',
      'federation_custom_ca_list: [DIR/none.pem]',
      /^hearth: federation_custom_ca_list\[0\]: \S+none\.pem: ENOENT: [^\n]+\n$/,
    ],
    [
      'names a file of federation_custom_ca_list without a certificate',
      'federation_custom_ca_list: [DIR/homeserver.yaml]',
      /^hearth: federation_custom_ca_list\[0\]: \S+homeserver\.yaml: [^\n]+\n$/,
    ],
    [
      'names a missing certificate of a listener',
      `${tlsListener}\ntls_certificate_path: DIR/none.pem\ntls_private_key_path: DIR/homeserver.yaml`,
      /^hearth: tls_certificate_path: cannot read \S+none\.pem: ENOENT: [^\n]+\n$/,
    ],
    [
      'names the files of a listener that are no certificate and no key',
      `${tlsListener}\ntls_certificate_path: DIR/homeserver.yaml\ntls_private_key_path: DIR/homeserver.yaml`,
      /^hearth: tls_certificate_path and tls_private_key_path: cannot use \S+homeserver\.yaml and \S+: [^\n]+\n$/,
    ],
    [
      'names the option of a Unix socket in a missing directory',
      'listeners: [{ path: DIR/none/socket, type: http }]',
      /^hearth: listeners\[\]\.path: ENOENT: [^\n]+none'\n$/,
    ],
    [
      'refuses a Unix socket in the place of another file',
      'listeners: [{ path: DIR/homeserver.yaml, type: http }]',
      /^hearth: listeners\[\]\.path: \S+homeserver\.yaml exists and is not a socket\n$/,
    ],
    [
      'names a log configuration that is not YAML, and the line of the mistake',
      'log_config: DIR/log.yaml',
      /^hearth: log_config: \S+log\.yaml: [^\n]+ at line 2, column 1:\n$/,
      (directory) => writeFileSync(join(directory, 'log.yaml'), 'root: [\n'),
    ],
    [
      'names a missing list of oEmbed providers',
      'url_preview_enabled: true\nurl_preview_ip_range_blacklist: []\noembed: { additional_providers: [DIR/none.json] }',
      /^hearth: oembed\.additional_providers: cannot read \S+none\.json: ENOENT: [^\n]+\n$/,
    ],
    [
      'names a media storage provider without a directory',
      'media_storage_providers: [{ module: file_system, store_local: true }]',
      /^hearth: media_storage_providers\[0\]: config\.directory is needed\n$/,
    ],
    [
      'names a missing directory of templates',
      'templates: { custom_template_directory: DIR/none }',
      /^hearth: templates\.custom_template_directory: there is no directory \S+none\n$/,
    ],
    [
      'names a missing directory of templates of mails',
      'email: { notif_from: a@example.org, template_dir: DIR/none }',
      /^hearth: email\.template_dir: there is no directory \S+none\n$/,
    ],
  ];
  for (const [index, [what, more, message, prepare]] of failures.entries()) {
    it(what, async () => {
      const { code, err } = await serve(`failure${index}`, more, prepare);
      assert.equal(code, 1);
      assert.match(err, message);
    });
  }

  it('hearth serve reports a port that is in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const { code, err } = await serve('port', listeners(port));
    server.close();
    assert.equal(code, 1);
    assert.equal(err, `hearth: listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`);
  });

  it('refuses a --manhole that is not a port', async () => {
    const { code, err } = await run(['serve', '--manhole', 'here']);
    assert.equal(code, 1);
    assert.match(err, /^error: option '--manhole <port>' argument 'here' is invalid\. Not a port number\.\n/);
  });
});

describe('hearth serve on a database in use', () => {
  it('hearth serve refuses to start on a database in use, but starts after a crash of the other server', async () => {
    const { args, code } = await serve('claimed', '');
    assert.equal(code, 0);
    const first = spawn(process.execPath, [program, 'serve', ...args], { cwd: folder, stdio: 'pipe' });
    try {
      await new Promise((resolve) => first.stdout.once('data', resolve));
      const { code, err } = await run(['serve', ...args]);
      assert.equal(code, 1);
      assert.match(err, /^hearth: the database \S+homeserver\.db is in use by another server\n$/);
    } finally {
      const exited = new Promise((resolve) => first.once('exit', resolve));
      first.kill('SIGKILL');
      await exited;
    }
    assert.equal((await run(['serve', ...args])).code, 0);
  });
});

describe('hearth serve with a closed output pipe', () => {
  it('hearth serve continues, reloads and stops as usual when its output pipe is closed', async () => {
    const { args } = await serve('unread', '');
    const child = spawn(process.execPath, [program, 'serve', ...args], { cwd: folder, stdio: 'pipe' });
    const errors = text(child.stderr);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    try {
      let out = '';
      for await (const chunk of child.stdout) {
        out += String(chunk);
        if (out.includes('Hearth serves')) break;
      }
      child.stdout.destroy();
      const [url] = /http:\/\/[\d.:]+/.exec(out)!;
      // Each reload writes a line to the closed pipe.
      for (let times = 0; times < 3; times += 1) {
        child.kill('SIGHUP');
        assert.equal((await fetch(`${url}/health`)).status, 200);
      }
      child.kill('SIGTERM');
      assert.deepEqual([await exited, await errors], [0, '']);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

describe('files of a new server', () => {
  it('creates all files of a new server, media included, private to their owner, and logs that the server serves', async () => {
    const { code, directory, out } = await serve('private', 'media_store_path: DIR/media');
    assert.equal(code, 0);
    const lines = out.split('\n').filter((line) => line.startsWith('{'));
    const { msg, version, serverName, addresses } = JSON.parse(lines[0]!);
    assert.deepEqual([msg, serverName, addresses.length], ['Serving', 'example.org', 1]);
    assert.match(version, /^\d+\.\d+\.\d+$/);
    for (const name of ['homeserver.db', 'media', 'media/local', 'media/remote']) {
      assert.equal(statSync(join(directory, name)).mode & 0o077, 0, name);
    }
  });
});

describe('hearth register-user', () => {
  it('ends with an error if standard input contains no answers', async (context) => {
    writeFileSync(join(folder, 'secret'), 'secret\n');
    const server = createHttpServer((_request, response) => response.writeHead(404).end('{}'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    context.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const noAnswer =
      'no answer on standard input: give the name with -u and the password with --password-file';
    for (const [more, input, message] of [
      [[], '', noAnswer],
      [[], '\n', 'the user name is empty'],
      [['-u', 'ann'], '', noAnswer],
      [['-u', 'ann'], '\n', 'the password is empty'],
    ] as const) {
      const { code, err } = await run(['register-user', url, '--secret-file', 'secret', ...more], input);
      assert.deepEqual([code, err], [1, `hearth: ${message}\n`]);
    }
    const command = ['register-user', 'http://127.0.0.1:1', '--secret-file', 'secret'];
    // Both answers arrive, although they were sent at once.
    const { err } = await run(command, 'ann\nopen sesame\n');
    assert.match(err, /^hearth: http:\/\/127\.0\.0\.1:1 cannot be reached/);
  });

  it('checks the name before it asks for the password, says what passwords of users must have, and asks again when the passwords differ', async (context) => {
    const { args } = await serve(
      'terminal',
      'password_config: { policy: { enabled: true, minimum_length: 10, require_digit: true } }',
    );
    let isFree = false;
    const sent: string[] = [];
    const server = createHttpServer(async (request, response) => {
      const isCheck = request.url?.includes('/available') === true;
      if (request.method === 'POST') sent.push(JSON.parse(await text(request)).password);
      response
        .writeHead(isCheck && !isFree ? 400 : 200)
        .end(JSON.stringify({ nonce: 'n', user_id: '@ann:example.org', error: 'That name is not valid' }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    context.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const command = ['register-user', url, ...args];
    const name = ['User name: ', 'ann'] as const;
    const passwords = (...typed: string[]) =>
      typed.map(
        (password, index) => [index % 2 === 0 ? 'Password: ' : 'Repeat password: ', password] as const,
      );
    const refused = await runAtTerminal(command, [name]);
    assert.match(refused.err, /hearth: the user name ann: That name is not valid\n$/);
    assert.doesNotMatch(refused.err, /assword/);
    isFree = true;
    const typed = passwords('open sesame 1', 'open sesame 2', 'open sesame 3', 'open sesame 3');
    const { code, out, err } = await runAtTerminal(command, [name, ...typed]);
    assert.match(
      err,
      /Passwords of users must have at least 10 characters, a digit\. This command accepts others\.\nPassword: \nRepeat password: \nThe passwords differ\. Try again\.\nPassword: \nRepeat password: \n$/,
    );
    assert.deepEqual([code, sent], [0, ['open sesame 3']]);
    assert.match(out, /^Registered @ann:example\.org\.\nTo log in, enter http\S+ as the homeserver/);
    const withoutRepeat = await runAtTerminal(command, [name, ...passwords('1', '2', '3', '4', '5', '6')]);
    assert.deepEqual([withoutRepeat.code, sent.length], [1, 1]);
    assert.match(withoutRepeat.err, /hearth: the passwords differ\n$/);
  });

  it('checks the name before it asks for the password also where registration by clients is closed', async (context) => {
    const { args } = await serve('closed', '');
    const server = createHttpServer((request, response) => {
      const isProfileOfAnn = request.url?.endsWith(`/profile/${encodeURIComponent('@ann:example.org')}`);
      response.writeHead(isProfileOfAnn ? 200 : 403).end('{"error":"Registration is disabled"}');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    context.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const [name, reason] of [
      ['bad name', ': User names may contain only the characters a-z, 0-9 and ._=-/+'],
      ['123', ': Numeric user names are reserved for guests'],
      ['_ann', ': User names must not start with _'],
      ['Ann', ' is taken'],
    ] as const) {
      const { code, err } = await runAtTerminal(['register-user', url, ...args], [['User name: ', name]]);
      assert.equal(code, 1);
      assert.ok(err.includes(`hearth: the user name ${name}${reason}`), err);
      assert.doesNotMatch(err, /assword/);
    }
  });

  it('prints no control characters of the responses of a server', async (context) => {
    writeFileSync(join(folder, 'secret'), 'secret\n');
    let isFree = true;
    const server = createHttpServer((request, response) => {
      request.resume();
      const status = isFree || !request.url?.includes('/available') ? 200 : 400;
      const clearScreen = '\u001b[2J';
      response
        .writeHead(status)
        .end(JSON.stringify({ nonce: 'n', user_id: `@ann${clearScreen}`, error: `no${clearScreen}` }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    context.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const args = ['register-user', url, '--secret-file', 'secret', '-u', 'ann'];
    assert.match((await run(args, 'open sesame\n')).out, /^Registered @ann�\[2J\./);
    isFree = false;
    const { err } = await run(args, 'open sesame\n');
    assert.equal(err, 'hearth: the user name ann: no�[2J\n');
  });
});
