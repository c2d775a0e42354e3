import { createSecureContext, getCACertificates, type SecureContext, type SecureVersion } from 'node:tls';

export interface TlsOptions {
  /** Whether certificates must be valid. */
  readonly verify: boolean;
  /** Minimum TLS version; the default of the platform when absent. */
  readonly minimumVersion?: SecureVersion;
  /** PEM of the certificate authorities to trust instead of the machine's own. */
  readonly authorities?: readonly string[];
}

let lastId = 0;

/** Settings of TLS connections. Only requests with the same settings share connections. */
export class TlsSettings {
  /** Identifies the settings in keys of connection pools. */
  readonly id = ++lastId;
  readonly verify: boolean;
  readonly #options: TlsOptions;
  #context: SecureContext | undefined;

  constructor(options: TlsOptions) {
    this.verify = options.verify;
    this.#options = options;
  }

  /** Created once, at the first use: reading the certificate authorities is slow. */
  get context(): SecureContext {
    const { minimumVersion, authorities } = this.#options;
    this.#context ??= createSecureContext({
      ca: [...(authorities ?? systemAuthorities())],
      ...(minimumVersion && { minVersion: minimumVersion }),
    });
    return this.#context;
  }
}

/**
 * Returns the certificate authorities of the operating system, and those that `NODE_EXTRA_CA_CERTS` adds. If the
 * operating system has none, returns the authorities of Node.
 */
function systemAuthorities(): string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? [...system, ...getCACertificates('extra')] : getCACertificates('default');
}
