import type { Clock } from '../../kernel/clock.ts';
import type { ServerAuthenticator, SignedRequest } from '../../kernel/http/index.ts';
import { canonicalJson, isServerName, type JsonValue, MatrixError } from '../../protocol/index.ts';
import type { Destinations } from '../destinations/destinations.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import type { DomainWhitelist } from '../requests/domain-whitelist.ts';
import { signedText } from '../requests/request-signature.ts';
import { parseXMatrix, type XMatrix } from '../requests/x-matrix.ts';

export interface ServerAuthenticatorDeps {
  readonly serverName: string;
  readonly keys: KeyRing;
  readonly whitelist: DomainWhitelist;
  readonly destinations: Destinations;
  readonly clock: Clock;
}

/** Maximum signatures on one request. Servers send one, or one for each of their keys. */
const maxSignatures = 5;

/**
 * Authenticates requests of other servers by their signatures, which cover the method, the URI as sent, both
 * server names and the body.
 * Source: server-server API, "Request Authentication".
 */
export class XMatrixAuthenticator implements ServerAuthenticator {
  readonly #deps: ServerAuthenticatorDeps;

  constructor(deps: ServerAuthenticatorDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the name of the server that sent a request.
   * @throws MatrixError M_UNAUTHORIZED, with 400 when the origin is not a server name; M_FORBIDDEN when `federation_domain_whitelist` excludes the server
   */
  async authenticateServer(request: SignedRequest): Promise<string> {
    const signatures = this.#signaturesOf(request);
    const { origin } = signatures[0];
    this.#deps.whitelist.check(origin);
    const content = request.bodyText ?? canonicalText(request.body);
    const { method, url: uri } = request;
    const text = signedText({ method, uri, origin, destination: this.#deps.serverName, content });
    let isProven = false;
    for (const { key: keyId, signature } of signatures) {
      const key = await this.#currentKey(origin, keyId);
      if (key === undefined) continue;
      if (!key.verifies(text, signature)) throw unauthorized('The signature is invalid');
      isProven = true;
    }
    if (!isProven) throw unauthorized(`The keys that signed this request are not known as keys of ${origin}`);
    await this.#deps.destinations.recordSuccess(origin);
    return origin;
  }

  #signaturesOf({ authorization }: SignedRequest): readonly [XMatrix, ...XMatrix[]] {
    const [first, ...more] = authorization.flatMap((header) => parseXMatrix(header) ?? []);
    if (first === undefined) throw unauthorized('The request is not signed with X-Matrix');
    if (more.length >= maxSignatures) throw unauthorized('The request has too many signatures');
    if (more.some(({ origin }) => origin !== first.origin)) {
      throw unauthorized('The request is signed by different servers');
    }
    const { serverName } = this.#deps;
    for (const { destination = serverName } of [first, ...more]) {
      if (destination !== serverName) throw unauthorized('The request is addressed to another server');
    }
    if (!isServerName(first.origin)) {
      throw new MatrixError(400, 'M_UNAUTHORIZED', 'The origin is not a server name');
    }
    if (first.origin === serverName) throw unauthorized('The origin is this server');
    return [first, ...more];
  }

  /** Returns a key that is currently valid. Retired keys verify old events only. */
  async #currentKey(serverName: string, keyId: string) {
    if (!keyIdPattern.test(keyId)) return undefined;
    const now = this.#deps.clock.now();
    const key = await this.#deps.keys.find({ serverName, keyId, validUntil: now }, 'request');
    const counts = key !== undefined && key.expiredTs === undefined && key.validUntilTs >= now;
    return counts ? key.key : undefined;
  }
}

const canonicalText = (body: unknown) =>
  body === undefined ? undefined : canonicalJson(body as JsonValue, 'as written');

const keyIdPattern = /^ed25519:[^\s\p{Cc}]{1,200}$/u;

const unauthorized = (message: string) => new MatrixError(401, 'M_UNAUTHORIZED', message);
