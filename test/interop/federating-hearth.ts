import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HearthProcess } from '../clients/hearth-process.ts';
import { freePort } from '../support/network/free-port.ts';
import { openTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.ts';
import type { TestAuthority } from '../support/network/test-authority.ts';

/**
 * The host name of Hearth. It differs from the host name of the reference server, because server ACLs compare host names
 * without ports. The reference server resolves it with its hosts file.
 */
const host = 'hearth.localhost';

/** Retries for unreachable servers without long backoff. */
const quickRetries = {
  max_long_retry_delay: '1s',
  destination_min_retry_interval: '500ms',
  destination_retry_multiplier: 1,
  destination_max_retry_interval: '1s',
};

/** A Hearth in its own process that other servers reach over TLS. */
export class FederatingHearth {
  /** Server name, the domain of its users' ids. */
  readonly name: string;
  /** The proxy of this server: other servers send their requests to it. */
  readonly proxy: TcpProxy;
  readonly #process: HearthProcess;

  private constructor(name: string, process: HearthProcess, proxy: TcpProxy) {
    this.name = name;
    this.proxy = proxy;
    this.#process = process;
  }

  static async create(authority: TestAuthority): Promise<FederatingHearth> {
    const tlsPort = await freePort();
    const proxy = await openTcpProxy();
    proxy.target = tlsPort;
    const name = `${host}:${proxy.port}`;
    const { key, cert } = authority.issue(host);
    const listener = { type: 'http', bind_addresses: ['127.0.0.1'] };
    const process = await HearthProcess.create((directory, port) => {
      const [keyPath, certPath] = [join(directory, 'tls.key'), join(directory, 'tls.pem')];
      writeFileSync(keyPath, key);
      writeFileSync(certPath, cert);
      return {
        server_name: name,
        listeners: [
          { ...listener, port, resources: [{ names: ['client', 'federation'] }] },
          { ...listener, port: tlsPort, tls: true, resources: [{ names: ['client', 'federation'] }] },
        ],
        tls_certificate_path: certPath,
        tls_private_key_path: keyPath,
        federation_custom_ca_list: [authority.path],
        ip_range_whitelist: ['127.0.0.0/8'],
        presence: { enabled: true },
        allow_public_rooms_without_auth: true,
        allow_public_rooms_over_federation: true,
        allow_device_name_lookup_over_federation: true,
        room_list_publication_rules: [{ action: 'allow' }],
        federation: quickRetries,
        server_notices: { system_mxid_localpart: 'notices', room_name: 'Notices' },
      };
    });
    return new FederatingHearth(name, process, proxy);
  }

  get url(): string {
    return this.#process.url;
  }

  async start(): Promise<void> {
    await this.#process.start();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  get logFile(): string {
    return join(this.#process.directory, 'hearth.log');
  }

  log(): string {
    return readFileSync(this.logFile, 'utf8');
  }

  async remove(): Promise<void> {
    await this.proxy.close();
    await this.#process.remove();
  }
}
