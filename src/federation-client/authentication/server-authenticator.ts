import type { Clock } from '../../kernel/clock.ts';
import type { RequestSignature, ServerAuthenticator, SignedRequestHead } from '../../kernel/http/index.ts';
import { verifyInBackground } from '../../kernel/signing/index.ts';
import { decodeBase64, isServerName, MatrixError, type VerifyKey } from '../../protocol/index.ts';
import type { Destinations } from '../destinations/destinations.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import type { DomainWhitelist } from '../requests/domain-whitelist.ts';
import { type SignedParts, signedBytes, signedText } from '../requests/request-signature.ts';
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
 * Authenticates requests of other servers by their signatures. A signature covers the method, the URI as sent, both
 * server names and the body.
 * Source: server-server API, "Request Authentication".
 */
export class XMatrixAuthenticator implements ServerAuthenticator {
  readonly #deps: ServerAuthenticatorDeps;

  constructor(deps: ServerAuthenticatorDeps) {
    this.#deps = deps;
  }

  /**
   * Reads the signatures of a request and finds their keys; fetches keys that are not stored. Ignores signatures whose
   * key is not found.
   * @throws MatrixError M_UNAUTHORIZED; M_FORBIDDEN when `federation_domain_whitelist` excludes the server
   */
  async readSignature(head: SignedRequestHead): Promise<RequestSignature> {
    const { whitelist, serverName, destinations } = this.#deps;
    const signatures = this.#signaturesOf(head);
    const { origin } = signatures[0];
    whitelist.check(origin);
    const known: KnownSignature[] = [];
    for (const { key: keyId, signature } of signatures) {
      const key = await this.#currentKey(origin, keyId);
      if (key !== undefined) known.push({ key, signature });
    }
    if (known.length === 0) {
      throw unauthorized(`The keys that signed this request are not known as current keys of ${origin}`);
    }
    const parts = { method: head.method, uri: head.url, origin, destination: serverName };
    return new RequestSignatures(parts, known, () => destinations.recordSuccess(origin));
  }

  #signaturesOf({ authorization }: SignedRequestHead): readonly [XMatrix, ...XMatrix[]] {
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
    const isCurrent = key !== undefined && key.expiredTs === undefined && key.validUntilTs >= now;
    return isCurrent ? key.key : undefined;
  }
}

/** A signature whose key is known. */
interface KnownSignature {
  readonly key: VerifyKey;
  readonly signature: string;
}

/** The signatures of one request whose keys are known: all of them must be valid. */
class RequestSignatures implements RequestSignature {
  readonly origin: string;
  readonly #parts: Omit<SignedParts, 'content'>;
  readonly #signatures: readonly KnownSignature[];
  readonly #verified: () => Promise<void>;

  /** @param verified called when all signatures are valid */
  constructor(
    parts: Omit<SignedParts, 'content'>,
    signatures: readonly KnownSignature[],
    verified: () => Promise<void>,
  ) {
    this.origin = parts.origin;
    this.#parts = parts;
    this.#signatures = signatures;
    this.#verified = verified;
  }

  async verify(content: string | undefined): Promise<void> {
    const text = signedText({ ...this.#parts, content });
    const areValid = this.#signatures.every(({ key, signature }) => key.verifies(text, signature));
    if (!areValid) throw unauthorized('The signature is invalid');
    await this.#verified();
  }

  async covers(content: Buffer): Promise<boolean> {
    const text = signedBytes(this.#parts, content);
    for (const { key, signature } of this.#signatures) {
      const bytes = decodeBase64(signature);
      if (bytes === undefined) return false;
      const [isValid] = await verifyInBackground([{ key: key.publicKey, text, signature: bytes }]);
      if (!isValid) return false;
    }
    await this.#verified();
    return true;
  }
}

/** Matches ids of Ed25519 keys. Longer ids are not requested from other servers. */
const keyIdPattern = /^ed25519:[^\s\p{Cc}]{1,200}$/u;

const unauthorized = (message: string) => new MatrixError(401, 'M_UNAUTHORIZED', message);
