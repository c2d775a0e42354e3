import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type JsonObject, signJson } from '../../../src/protocol/index.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { type LoopbackServer, serveOnLoopback } from '../network/loopback.ts';
import type { TestAuthority } from '../network/test-authority.ts';

/** The body of a `POST /store-invite` request and the token that was returned for it. */
export type StoredInvite = Readonly<Record<string, unknown>> & { readonly token: string };

/** The access token that the identity server accepts. */
export const identityToken = 'a-token-of-the-identity-server';

/** An identity server at `id.example` with the endpoints that homeservers use. */
export class IdentityServerUnderTest {
  /** User ids by `address medium`. */
  readonly bound = new Map<string, string>();
  /** Stored invites, in the order of their requests. */
  readonly invites: StoredInvite[] = [];
  /** Received requests as `METHOD /path`, below `/_matrix/identity/v2`. */
  readonly receivedRequests: string[] = [];
  /** Whether `/pubkey/isvalid` reports the key of this identity server as valid. */
  keysAreValid = true;
  /** The `lookup_pepper`; a lookup with another pepper fails with M_INVALID_PEPPER. */
  pepper = 'salt';
  algorithms = ['none', 'sha256'];
  /** Whether a lookup maps addresses without a user to null, as some identity servers do. */
  answersNull = false;
  /** Mail addresses that were validated, by session id. */
  readonly validated = new Map<string, string>();
  /** `Authorization` headers of the `/3pid/unbind` requests. */
  readonly signatures: string[] = [];
  /** Responses that replace the normal one, by path. */
  readonly answers = new Map<string, { readonly status: number; readonly body: unknown }>();
  readonly #key = newSigningKey('0');
  readonly #served: LoopbackServer;

  private constructor(served: LoopbackServer) {
    this.#served = served;
  }

  static async start(authority: TestAuthority): Promise<IdentityServerUnderTest> {
    let server: IdentityServerUnderTest | undefined;
    const served = await serveOnLoopback((request, response) => {
      void server?.answer(request).then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
    }, authority.issue('id.example'));
    server = new IdentityServerUnderTest(served);
    return server;
  }

  /** The `id_server` to send in requests. */
  get name(): string {
    return `id.example:${this.#served.port}`;
  }

  stop(): Promise<void> {
    return this.#served.close();
  }

  /** Signs an object as the identity server does when an invited address is bound to a user. */
  sign(object: JsonObject): JsonObject {
    return signJson(object, 'id.example', this.#key);
  }

  async answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://id.example');
    const path = pathname.replace('/_matrix/identity/v2', '');
    this.receivedRequests.push(`${request.method} ${path}`);
    const scripted = this.answers.get(path);
    if (scripted) return scripted;
    if (path.endsWith('/isvalid')) {
      const isKnown = searchParams.get('public_key') === this.#publicKey;
      return { status: 200, body: { valid: isKnown && this.keysAreValid } };
    }
    if (path === '/3pid/unbind') return this.#unbind(request);
    if (request.headers.authorization !== `Bearer ${identityToken}`) return refusal(401, 'M_UNAUTHORIZED');
    if (path === '/hash_details') {
      return { status: 200, body: { algorithms: this.algorithms, lookup_pepper: this.pepper } };
    }
    const body = JSON.parse(await textOf(request)) as Record<string, unknown>;
    if (path === '/lookup') return this.#lookUp(body);
    if (path === '/store-invite') return this.#store(body);
    if (path === '/3pid/bind') return this.#bind(body);
    return refusal(404, 'M_UNRECOGNIZED');
  }

  get #publicKey(): string {
    return this.#key.publicKey.base64;
  }

  #lookUp({ addresses, algorithm, pepper }: Record<string, unknown>) {
    if (pepper !== this.pepper) return refusal(400, 'M_INVALID_PEPPER');
    const mappings: Record<string, string | null> = {};
    if (this.answersNull) for (const address of addresses as string[]) mappings[address] = null;
    for (const [address, userId] of this.bound) {
      const hashed =
        algorithm === 'sha256' ? hash('sha256', `${address} ${this.pepper}`, 'base64url') : address;
      if ((addresses as string[]).includes(hashed)) mappings[hashed] = userId;
    }
    return { status: 200, body: { mappings } };
  }

  #bind({ sid, mxid }: Record<string, unknown>) {
    const address = this.validated.get(String(sid));
    if (address === undefined) return refusal(400, 'M_NO_VALID_SESSION');
    this.bound.set(`${address} email`, String(mxid));
    return { status: 200, body: { medium: 'email', address, mxid } };
  }

  async #unbind(request: IncomingMessage) {
    this.signatures.push(request.headers.authorization ?? '');
    const { mxid, threepid } = JSON.parse(await textOf(request)) as {
      mxid: string;
      threepid: { medium: string; address: string };
    };
    const key = `${threepid.address} ${threepid.medium}`;
    if (this.bound.get(key) !== mxid) return refusal(403, 'M_FORBIDDEN');
    this.bound.delete(key);
    return { status: 200, body: {} };
  }

  #store(body: Record<string, unknown>) {
    if (this.bound.has(`${body['address']} ${body['medium']}`)) return refusal(400, 'M_THREEPID_IN_USE');
    const token = `token${this.invites.length}`;
    this.invites.push({ ...body, token });
    const key = {
      public_key: this.#publicKey,
      key_validity_url: `https://${this.name}/_matrix/identity/v2/pubkey/isvalid`,
    };
    return { status: 200, body: { token, public_keys: [key], display_name: 'a...@b...' } };
  }
}

const refusal = (status: number, errcode: string) => ({ status, body: { errcode, error: 'No' } });

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
