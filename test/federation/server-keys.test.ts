import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHomeserver, type Homeserver } from '../../src/homeserver.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { OutboundHttp, outboundSection, TlsSettings } from '../../src/kernel/outbound/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import {
  isJsonObject,
  type JsonObject,
  type SigningKey,
  verifyJson,
  writeSigningKeys,
} from '../../src/protocol/index.ts';
import { sectionDefaults } from '../support/inputs/section-defaults.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import { freePort } from '../support/network/free-port.ts';
import { FakeResolver } from '../support/network/loopback.ts';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { plainCaches } from '../support/servers/caches.ts';
import { testConfiguration } from '../support/servers/server.ts';

/** A homeserver, its signing key, and the key that signs its answers as a notary. */
interface KeyedServer {
  readonly name: string;
  readonly key: SigningKey;
  readonly notaryKey: SigningKey;
}

describe('signing keys of two homeservers', () => {
  const running: Homeserver[] = [];
  const resolver = new FakeResolver();
  let folder: string;
  let authority: TestAuthority;
  let http: OutboundHttp;
  let first: KeyedServer;
  let second: KeyedServer;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-federation-'));
    authority = makeTestAuthority();
    const config = sectionDefaults(outboundSection, { ip_range_blacklist: [] });
    http = new OutboundHttp({
      caches: plainCaches(systemClock),
      config,
      clock: systemClock,
      resolver,
    });
    first = await start('one.example');
    second = await start('two.example');
  });
  after(async () => {
    await http.close();
    for (const homeserver of running) await homeserver.stop();
    authority.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const file = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };

  async function start(host: string): Promise<KeyedServer> {
    resolver.hosts.set(host, ['127.0.0.1']);
    const port = await freePort();
    const name = `${host}:${port}`;
    const { key: tlsKey, cert } = authority.issue(host);
    const [key, notaryKey] = [newSigningKey('s'), newSigningKey('n')];
    const configuration = testConfiguration({
      server: { server_name: name },
      http: {
        tls_certificate_path: file(`${host}.pem`, cert),
        tls_private_key_path: file(`${host}.key`, tlsKey),
        listeners: [
          {
            port,
            type: 'http',
            tls: true,
            bind_addresses: ['127.0.0.1'],
            resources: [{ names: ['federation'] }],
          },
        ],
      },
      outbound: { ip_range_whitelist: ['127.0.0.0/8'] },
      media: { enable_media_repo: false },
      federationClient: {
        signing_key_path: file(`${host}.signing.key`, writeSigningKeys([key])),
        key_server_signing_keys_path: file(`${host}.notary.key`, writeSigningKeys([notaryKey])),
        federation_custom_ca_list: [authority.path],
        trusted_key_servers: [],
      },
    });
    const homeserver = createHomeserver({
      configuration,
      clock: systemClock,
      randomness: systemRandomness,
      log: silentLogger,
      resolver,
      databaseOptions: { kind: 'sqlite', path: join(folder, `${host}.db`), flush: 'never' },
    });
    await homeserver.start();
    running.push(homeserver);
    return { name, key, notaryKey };
  }

  async function get(server: KeyedServer, path: string): Promise<JsonObject> {
    const tls = new TlsSettings({ verify: true, authorities: [authority.pem] });
    const limits = { timeout: 100_000, maxBody: 100_000, tls };
    const { status, body } = await http.fetch(
      new URL(`https://${server.name}/_matrix/key/v2${path}`),
      limits,
    );
    assert.equal(status, 200);
    return JSON.parse(body.toString()) as JsonObject;
  }

  const isSigned = (json: unknown, name: string, key: SigningKey) =>
    isJsonObject(json) && verifyJson(json, name, (id) => (id === key.keyId ? key.publicKey : undefined));

  it('publishes its signing keys at GET /_matrix/key/v2/server [option: signing_key_path]', async () => {
    for (const server of [first, second]) {
      const published = await get(server, '/server');
      assert.equal(published['server_name'], server.name);
      assert.equal(isSigned(published, server.name, server.key), true);
    }
  });

  it('returns the signing keys of another server, signed as a notary [option: key_server_signing_keys_path]', async () => {
    const { server_keys: answers } = await get(first, `/query/${second.name}`);
    assert.ok(Array.isArray(answers) && answers.length === 1);
    assert.equal(isSigned(answers[0], second.name, second.key), true);
    assert.equal(isSigned(answers[0], first.name, first.notaryKey), true);
    assert.equal(isSigned(answers[0], first.name, first.key), false);
  });
});
