import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/network/free-port.ts';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { HearthProcess } from './hearth-process.ts';

/** Two Hearths, each in its own process, that federate over TLS on the loopback address. */
export class TwoHearths {
  readonly first: HearthProcess;
  readonly second: HearthProcess;
  readonly #authority: TestAuthority;

  private constructor(first: HearthProcess, second: HearthProcess, authority: TestAuthority) {
    this.first = first;
    this.second = second;
    this.#authority = authority;
  }

  static async start(): Promise<TwoHearths> {
    const authority = makeTestAuthority();
    const [first, second] = await Promise.all([federatingHearth(authority), federatingHearth(authority)]);
    const hearths = new TwoHearths(first, second, authority);
    try {
      await Promise.all([first.start(), second.start()]);
      return hearths;
    } catch (error) {
      await hearths.remove();
      throw error;
    }
  }

  async remove(): Promise<void> {
    await Promise.all([this.first.remove(), this.second.remove()]);
    this.#authority.remove();
  }
}

/** Makes a Hearth that federates over TLS; its server name contains its port. It is not started. */
export async function federatingHearth(authority: TestAuthority): Promise<HearthProcess> {
  const { key, cert } = authority.issue('localhost');
  const federationPort = await freePort();
  return HearthProcess.create((directory, port) => {
    writeFileSync(join(directory, 'tls.key'), key);
    writeFileSync(join(directory, 'tls.crt'), cert);
    const listener = { type: 'http', bind_addresses: ['127.0.0.1'] };
    const resources = (name: string) => [{ names: [name], compress: false }];
    return {
      server_name: `localhost:${federationPort}`,
      listeners: [
        { ...listener, port, tls: false, resources: resources('client') },
        { ...listener, port: federationPort, tls: true, resources: resources('federation') },
      ],
      tls_certificate_path: join(directory, 'tls.crt'),
      tls_private_key_path: join(directory, 'tls.key'),
      federation_custom_ca_list: [authority.path],
      ip_range_whitelist: ['127.0.0.0/8', '::1/128'],
      // Retries requests to unreachable servers soon.
      federation: { destination_min_retry_interval: '200ms', destination_max_retry_interval: '1s' },
    };
  });
}
