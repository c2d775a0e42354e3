import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, HearthProcess } from '../clients/hearth-process.ts';
import { makeTestAuthority, type TestAuthority } from '../support/test-authority.ts';
import { hearthHost, ReferenceServer } from './reference-server.ts';
import { Someone } from './someone.ts';

/** A homeserver of the network, whoever made it. */
export interface Member {
  /** The name that ids of its users end in. */
  readonly name: string;
  readonly url: string;
}

/** Where the logs of both are kept, for who looks for the cause of something. */
const keptLogs = process.env['HEARTH_INTEROP_LOGS'];

/** Hearth and the reference server, which reach each other over TLS under one authority. */
export class Network {
  readonly hearth: Member & { readonly process: HearthProcess };
  readonly reference: ReferenceServer;
  readonly #authority: TestAuthority;

  private constructor(hearth: Network['hearth'], reference: ReferenceServer, authority: TestAuthority) {
    this.hearth = hearth;
    this.reference = reference;
    this.#authority = authority;
  }

  /** @param settings options of Hearth's configuration file that come in addition or instead */
  static async start(settings: Readonly<Record<string, unknown>> = {}): Promise<Network> {
    const authority = makeTestAuthority();
    const reference = await ReferenceServer.create(authority);
    const hearth = await startHearth(authority, settings);
    await reference.start();
    return new Network(hearth, reference, authority);
  }

  /** Registers somebody on each server. */
  async two(name: string): Promise<{ here: Someone; there: Someone }> {
    return {
      here: await Someone.register(this.hearth, name),
      there: await Someone.register(this.reference, name),
    };
  }

  /** @throws AssertionError when Hearth had to log an error, whatever became of it */
  async stop(): Promise<void> {
    const { process } = this.hearth;
    await process.stop();
    const log = readFileSync(join(process.directory, 'hearth.log'), 'utf8').split('\n');
    if (keptLogs) {
      writeFileSync(join(keptLogs, `${this.hearth.name}.hearth.log`), log.join('\n'));
      writeFileSync(join(keptLogs, `${this.hearth.name}.reference.log`), this.reference.log(Infinity));
    }
    await process.remove();
    await this.reference.remove();
    this.#authority.remove();
    assert.deepEqual(
      log.filter((line) => line.includes('"level":"error"') || line.includes('"level":"fatal"')),
      [],
    );
  }
}

async function startHearth(
  authority: TestAuthority,
  settings: Readonly<Record<string, unknown>>,
): Promise<Network['hearth']> {
  const tlsPort = await freePort();
  // Server ACLs look at host names only: that of the reference server is another one.
  const name = `${hearthHost}:${tlsPort}`;
  const { key, cert } = authority.issue(hearthHost);
  const listener = { type: 'http', bind_addresses: ['127.0.0.1'] };
  const server = await HearthProcess.create((directory, port) => {
    const [keyPath, certPath] = [join(directory, 'tls.key'), join(directory, 'tls.pem')];
    writeFileSync(keyPath, key);
    writeFileSync(certPath, cert);
    return {
      server_name: name,
      listeners: [
        { ...listener, port, resources: [{ names: ['client'] }] },
        { ...listener, port: tlsPort, tls: true, resources: [{ names: ['federation'] }] },
      ],
      tls_certificate_path: certPath,
      tls_private_key_path: keyPath,
      federation_custom_ca_list: [authority.path],
      ip_range_whitelist: ['127.0.0.0/8'],
      presence: { enabled: true },
      allow_public_rooms_over_federation: true,
      room_list_publication_rules: [{ action: 'allow' }],
      federation: quickRetries,
      ...settings,
    };
  });
  await server.start();
  return { name, url: server.url, process: server };
}

/** A server that was away is asked again at once. */
const quickRetries = {
  max_long_retry_delay: '1s',
  destination_min_retry_interval: '500ms',
  destination_retry_multiplier: 1,
  destination_max_retry_interval: '1s',
};
