import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/network/free-port.ts';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { HearthProcess } from './hearth-process.ts';

/** Two Hearths, each in its own process, that federate over TLS on the loopback address. */
export class TwoHearths {
  readonly one: HearthProcess;
  readonly other: HearthProcess;
  readonly #authority: TestAuthority;

  private constructor(one: HearthProcess, other: HearthProcess, authority: TestAuthority) {
    this.one = one;
    this.other = other;
    this.#authority = authority;
  }

  static async start(): Promise<TwoHearths> {
    const authority = makeTestAuthority();
    const [one, other] = await Promise.all([federatingHearth(authority), federatingHearth(authority)]);
    const two = new TwoHearths(one, other, authority);
    try {
      await Promise.all([one.start(), other.start()]);
      return two;
    } catch (error) {
      await two.remove();
      throw error;
    }
  }

  async remove(): Promise<void> {
    await Promise.all([this.one.remove(), this.other.remove()]);
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
    const reader = { type: 'http', bind_addresses: ['127.0.0.1'] };
    const resources = (name: string) => [{ names: [name], compress: false }];
    return {
      server_name: `localhost:${federationPort}`,
      listeners: [
        { ...reader, port, tls: false, resources: resources('client') },
        { ...reader, port: federationPort, tls: true, resources: resources('federation') },
      ],
      tls_certificate_path: join(directory, 'tls.crt'),
      tls_private_key_path: join(directory, 'tls.key'),
      federation_custom_ca_list: [authority.path],
      ip_range_whitelist: ['127.0.0.0/8', '::1/128'],
      // Short retries for unreachable servers.
      federation: { destination_min_retry_interval: '200ms', destination_max_retry_interval: '1s' },
    };
  });
}
