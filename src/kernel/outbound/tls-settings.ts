import { createSecureContext, getCACertificates, type SecureContext, type SecureVersion } from 'node:tls';

export interface TlsOptions {
  /** Whether certificates must be valid. */
  readonly verify: boolean;
  /** Oldest version to speak; the platform's choice when absent. */
  readonly minimumVersion?: SecureVersion;
  /** PEM of the authorities to trust, in place of those that the machine trusts. */
  readonly authorities?: readonly string[];
}

let made = 0;

/** How TLS is spoken. Connections are shared between requests with the same settings only. */
export class TlsSettings {
  /** Tells settings apart. */
  readonly id = ++made;
  readonly verify: boolean;
  readonly #options: TlsOptions;
  #context: SecureContext | undefined;

  constructor(options: TlsOptions) {
    this.verify = options.verify;
    this.#options = options;
  }

  /** Made when it is first needed, once: reading the authorities takes a while. */
  get context(): SecureContext {
    const { minimumVersion, authorities } = this.#options;
    this.#context ??= createSecureContext({
      ca: [...(authorities ?? trustedByMachine())],
      ...(minimumVersion && { minVersion: minimumVersion }),
    });
    return this.#context;
  }
}

/** The operating system's judgement, with what the environment adds; where it has none, that of the platform. */
function trustedByMachine(): string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? [...system, ...getCACertificates('extra')] : getCACertificates('default');
}
