import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import ssh2 from 'ssh2';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { testConfiguration } from '../../../test/support/servers/server.ts';
import { createLogger, silentLogger } from '../../kernel/observability/index.ts';
import { StartFailure } from '../../kernel/start-failure.ts';
import { type Manhole, openManhole } from './manhole.ts';

const login = { username: 'me', password: 'open sesame' };

describe('openManhole', () => {
  let manhole: Manhole | undefined;
  let clock: ManualClock;
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-manhole-'));
  });
  after(() => rmSync(folder, { recursive: true }));
  afterEach(() => manhole?.close());

  const open = async (config: Parameters<typeof testConfiguration>[0] = {}, log = silentLogger) => {
    clock = manualClock();
    const deps = {
      configuration: testConfiguration(config),
      context: { answer: 42 },
      clock,
      log,
    };
    manhole = await openManhole(deps);
    return manhole?.addresses[0];
  };
  const withSettings = (settings: object) => ({ process: { manhole: 0, manhole_settings: settings } });

  /** Connects by telnet, and sends the next of `answers` at each prompt. @returns all that the server has sent */
  async function telnet(address: string, answers: readonly string[]): Promise<string> {
    const [, host, port] = /^(.*):(\d+)$/.exec(address)!;
    const socket = connect(Number(port), host);
    const replies = [...answers];
    let text = '';
    // The server treats a client that sends nothing for 300 ms as a telnet client.
    const timeSkipping = setInterval(() => clock.advance(100), 10);
    socket.once('data', () => clearInterval(timeSkipping)).once('close', () => clearInterval(timeSkipping));
    for await (const chunk of socket) {
      text += String(chunk);
      if (/: $|> $/.test(text) && replies.length > 0) socket.write(`${replies.shift()}\n`);
    }
    return text;
  }

  /** Logs in at a port with the SSH client of `ssh2`. @returns the output of the console, and the host key */
  function sshClient(address: string, given = login, input = 'answer + 1\n.exit\n') {
    const { promise, resolve, reject } = Promise.withResolvers<{ text: string; hostKey: Buffer }>();
    const client = new ssh2.Client();
    let hostKey: Buffer = Buffer.alloc(0);
    const finish = (text: string) => {
      client.end();
      resolve({ text, hostKey });
    };
    client.on('error', reject);
    client.once('ready', () =>
      client.shell({ cols: 120, rows: 40 }, (error, stream) => {
        if (error) return reject(error);
        let text = '';
        stream.on('data', (chunk: Buffer) => {
          text += String(chunk);
        });
        stream.once('close', () => finish(text));
        return stream.write(input);
      }),
    );
    client.connect({
      host: '127.0.0.1',
      port: Number(address.split(':').at(-1)),
      ...given,
      readyTimeout: 120_000,
      hostVerifier: (key: Buffer) => {
        hostKey = key;
        return true;
      },
    });
    return promise;
  }

  it('opens no debugging console unless the configuration has one', async () => {
    await open();
    assert.equal(manhole, undefined);
  });

  it('runs JavaScript only after a login with the right name and password [option: manhole, manhole_settings.username, manhole_settings.password]', async () => {
    const address = (await open(withSettings(login)))!;
    assert.match(await telnet(address, ['me', 'open sesame', 'answer + 1', '.exit']), /43/);
    const refused = await telnet(address, ['me', 'please', 'answer + 1', '.exit']);
    assert.match(refused, /Refused/);
    assert.doesNotMatch(refused, /43/);
    assert.match((await sshClient(address)).text, /43/);
    await assert.rejects(sshClient(address, { ...login, password: 'please' }), /authentication/i);
    await assert.rejects(sshClient(address, { ...login, username: 'you' }), /authentication/i);
  });

  it('rejects even the right password for up to ten seconds after ten wrong ones from the same address', async () => {
    const address = (await open(withSettings(login)))!;
    for (let wrong = 0; wrong < 10; wrong += 1)
      await assert.rejects(sshClient(address, { ...login, password: `${wrong}` }), /authentication/i);
    await assert.rejects(sshClient(address), /authentication/i);
    clock.advance(10_000);
    assert.match((await sshClient(address)).text, /43/);
  });

  it('closes a connection without a login after 30 seconds, and keeps connections with a login', async () => {
    const address = (await open(withSettings(login)))!;
    const port = Number(address.split(':').at(-1));
    const connected = async (greeting: string) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(greeting);
      // The server answers once it knows the protocol.
      await once(socket, 'data');
      return socket;
    };
    const idle = [await connected('SSH-2.0-idle\r\n'), await connected('me\n')];
    const { promise: loggedIn, resolve } = Promise.withResolvers<void>();
    const client = new ssh2.Client();
    const ended = once(client, 'close');
    let isOpen = true;
    void ended.then(() => {
      isOpen = false;
    });
    client.once('ready', () => resolve());
    client.connect({ host: '127.0.0.1', port, ...login, readyTimeout: 120_000 });
    await loggedIn;
    const closed = idle.map((socket) => once(socket, 'close'));
    clock.advance(30_000);
    await Promise.all(closed);
    assert.equal(isOpen, true);
    client.end();
    await ended;
  });

  it('opens a debugging console on a listener of the type manhole [option: listeners[].type]', async () => {
    const listeners = [{ port: 0, type: 'manhole' as const, bind_addresses: ['127.0.0.1'] }];
    assert.match((await open({ http: { listeners } }))!, /^127\.0\.0\.1:\d+$/);
  });

  it('uses the configured host key, and rejects a public key that does not belong to the private key [option: manhole_settings.ssh_priv_key_path, manhole_settings.ssh_pub_key_path]', async () => {
    const keys = ['one', 'other'].map((name) => {
      const pair = ssh2.utils.generateKeyPairSync('ed25519');
      const path = join(folder, name);
      writeFileSync(path, pair.private);
      writeFileSync(`${path}.pub`, pair.public);
      return path;
    });
    const [path, other] = keys as [string, string];
    const address = (await open(
      withSettings({ ...login, ssh_priv_key_path: path, ssh_pub_key_path: `${path}.pub` }),
    ))!;
    const { hostKey } = await sshClient(address);
    const expected = ssh2.utils.parseKey(readFileSync(`${path}.pub`)) as ssh2.ParsedKey;
    assert.deepEqual(hostKey, expected.getPublicSSH());
    await manhole!.close();

    const failures: readonly (readonly [object, RegExp])[] = [
      [
        { ssh_priv_key_path: path, ssh_pub_key_path: `${other}.pub` },
        /ssh_pub_key_path: .*not the public half/,
      ],
      [{ ssh_priv_key_path: join(folder, 'absent') }, /ssh_priv_key_path: cannot read .*ENOENT/],
      [{ ssh_priv_key_path: `${path}.pub` }, /ssh_priv_key_path: .* is not a private key/],
      [{ ssh_priv_key_path: import.meta.filename }, /ssh_priv_key_path: .* is not a key: .*ssh-keygen/],
    ];
    for (const [settings, message] of failures) {
      await assert.rejects(open(withSettings(settings)), (error) => {
        assert.ok(error instanceof StartFailure);
        assert.match(error.message, message);
        return true;
      });
    }
  });

  it('serves SSH, but not telnet, on addresses that other machines can reach', async (context) => {
    const ownAddress = Object.values(networkInterfaces())
      .flat()
      .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
    if (ownAddress === undefined)
      return context.skip('this machine has no address besides the loopback ones');
    const listeners = [{ port: 0, type: 'manhole' as const, bind_addresses: ['0.0.0.0'] }];
    await open({ http: { listeners }, ...withSettings(login) });
    const port = manhole!.addresses[1]!.split(':')[1]!;
    const text = await telnet(`${ownAddress}:${port}`, ['me', 'open sesame', 'answer + 1']);
    assert.match(text, /Use SSH/);
    assert.match((await sshClient(port)).text, /43/);
  });

  it('warns about a publicly known password and host key, and logs an error about the password if other machines can connect', async () => {
    const lines: { level: string; msg: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const log = createLogger({ level: 'info', destination });
    await open(withSettings({}), log);
    const levelsOf = (message: RegExp) =>
      lines.filter(({ msg }) => message.test(msg)).map(({ level }) => level);
    assert.deepEqual(levelsOf(/publicly known password/), ['warn']);
    assert.deepEqual(levelsOf(/publicly known host key/), ['warn']);
    await manhole!.close();
    lines.length = 0;
    const listeners = [{ port: 0, type: 'manhole' as const, bind_addresses: ['0.0.0.0'] }];
    await open({ http: { listeners } }, log);
    assert.deepEqual(levelsOf(/publicly known password/), ['error']);
  });
});
