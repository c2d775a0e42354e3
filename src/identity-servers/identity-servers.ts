import { hash } from 'node:crypto';
import { OutboundError, type OutboundHttp, type OutboundRequest } from '../kernel/outbound/index.ts';
import {
  canonicalJson,
  isJsonObject,
  isUserId,
  type JsonObject,
  type JsonValue,
  MatrixError,
  parseJson,
  unknown,
} from '../protocol/index.ts';
import { readStoredInvite, type StoredInvite } from './stored-invite.ts';
import type { ThirdPartyId } from './third-party-id.ts';

/** A session in which an identity server has validated an address of a user. */
export interface IdentityServerSession {
  /** Host name of the identity server, with a port if it is not 443. */
  readonly server: string;
  /** The access token of the user for the identity server. */
  readonly accessToken: string;
  readonly sid: string;
  readonly clientSecret: string;
}

/** An address that an identity server publishes as belonging to a user. */
export interface PublishedAddress {
  readonly server: string;
  readonly userId: string;
  readonly medium: string;
  readonly address: string;
}

/** Timeout of requests in milliseconds; a user waits for them. */
const timeout = 10_000;

/** Maximum bytes of a response. */
const maxBytes = 65_536;

/** Errcodes of an identity server that are passed on to clients; others are hidden. */
const passedOnCodes = new Set([
  'M_TERMS_NOT_SIGNED',
  'M_THREEPID_IN_USE',
  'M_UNRECOGNIZED',
  'M_LIMIT_EXCEEDED',
  'M_NO_VALID_SESSION',
  'M_SESSION_NOT_VALIDATED',
  'M_SESSION_EXPIRED',
]);

/**
 * Sends requests to identity servers. Users choose the servers, so a response is trusted only for the request of the
 * user who has chosen the server.
 * Source: identity service API.
 */
export class IdentityServers {
  readonly #http: Pick<OutboundHttp, 'fetch'>;

  constructor(http: Pick<OutboundHttp, 'fetch'>) {
    this.#http = http;
  }

  /**
   * Returns the user id that is associated with a third-party identifier; `undefined` when there is none.
   * Source: identity service API, "Association lookup".
   * @throws IdentityServerError; MatrixError 502 when the server cannot be reached or its response is invalid
   */
  async lookUp(address: ThirdPartyId): Promise<string | undefined> {
    try {
      return await this.#lookUp(address);
    } catch (error) {
      // The pepper may have changed between the two requests.
      if (error instanceof IdentityServerError && error.code === 'M_INVALID_PEPPER')
        return this.#lookUp(address);
      throw error;
    }
  }

  async #lookUp({ server, accessToken, medium, address }: ThirdPartyId): Promise<string | undefined> {
    const details = await this.#request(server, accessToken, '/hash_details');
    const { algorithms, lookup_pepper: pepper } = details;
    if (!Array.isArray(algorithms) || typeof pepper !== 'string') throw invalidResponse();
    const isHashed = algorithms.includes('sha256');
    if (!isHashed && !algorithms.includes('none')) throw invalidResponse();
    const key = isHashed
      ? hash('sha256', `${address} ${medium} ${pepper}`, 'base64url')
      : `${address} ${medium}`;
    const body = { addresses: [key], algorithm: isHashed ? 'sha256' : 'none', pepper };
    const { mappings } = await this.#request(server, accessToken, '/lookup', body);
    if (!isJsonObject(mappings)) throw invalidResponse();
    const userId = Object.hasOwn(mappings, key) ? mappings[key] : undefined;
    // Some identity servers answer null for an address without an owner.
    if (userId === undefined || userId === null) return undefined;
    if (!isUserId(userId)) throw invalidResponse();
    return userId;
  }

  /**
   * Stores an invite for a third-party identifier that is associated with no user. The identity server sends the
   * invite by mail or message, and notifies this server when the identifier is associated with a user.
   * Source: identity service API, "Invitation storage".
   * @throws like `lookUp`, with M_THREEPID_IN_USE when the identifier is associated with a user
   */
  async storeInvite(
    { server, accessToken, medium, address }: ThirdPartyId,
    details: JsonObject,
  ): Promise<StoredInvite> {
    const body = { ...details, medium, address };
    const stored = readStoredInvite(await this.#request(server, accessToken, '/store-invite', body));
    if (!stored) throw invalidResponse();
    return stored;
  }

  /**
   * Publishes the address of a session that the identity server has validated.
   * Source: identity service API, `POST /3pid/bind`.
   * @throws like `lookUp`
   */
  async bind(
    userId: string,
    { server, accessToken, sid, clientSecret }: IdentityServerSession,
  ): Promise<{ medium: string; address: string }> {
    const body = { sid, client_secret: clientSecret, mxid: userId };
    const { medium, address } = await this.#request(server, accessToken, '/3pid/bind', body);
    if (typeof medium !== 'string' || typeof address !== 'string') throw invalidResponse();
    return { medium, address };
  }

  /**
   * Requests, in the name of this homeserver, that an identity server removes the association of an address with a
   * user.
   * Source: identity service API, `POST /3pid/unbind`.
   * @param sign makes the `Authorization` header
   * @returns whether the identity server has removed it; false also when it cannot be reached
   */
  async unbind(
    { server, userId, medium, address }: PublishedAddress,
    sign: (request: { method: string; uri: string; destination: string; content: string }) => string,
  ): Promise<boolean> {
    const uri = '/_matrix/identity/v2/3pid/unbind';
    const content = canonicalJson({ mxid: userId, threepid: { medium, address } });
    const authorization = sign({ method: 'POST', uri, destination: server, content });
    const headers = { authorization, 'content-type': 'application/json' };
    try {
      const request = { method: 'POST' as const, headers, body: content };
      return (await this.#fetch(new URL(`https://${server}${uri}`), request)).status === 200;
    } catch (error) {
      if (error instanceof OutboundError) return false;
      throw error;
    }
  }

  /**
   * Whether an identity server says that a key of a third-party invite is still valid. False when it cannot be reached,
   * and for a URL without HTTPS.
   * Source: client-server API, "Third-party invites"; identity service API, `GET /pubkey/isvalid`.
   * @param validityUrl `key_validity_url` of the event
   */
  async isKeyValid(validityUrl: string, publicKey: string): Promise<boolean> {
    const url = URL.parse(validityUrl);
    if (url?.protocol !== 'https:') return false;
    url.searchParams.set('public_key', publicKey);
    try {
      const { status, json } = await this.#fetch(url, {});
      return status === 200 && isJsonObject(json) && json['valid'] === true;
    } catch (error) {
      if (error instanceof OutboundError) return false;
      throw error;
    }
  }

  async #request(server: string, token: string, path: string, body?: JsonObject): Promise<JsonObject> {
    const url = new URL(`https://${server}/_matrix/identity/v2${path}`);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const request = body ? { method: 'POST' as const, headers, body: JSON.stringify(body) } : { headers };
    const { status, json } = await this.#fetch(url, request).catch((error: unknown) => {
      if (error instanceof OutboundError) throw unknown('The identity server cannot be reached', 502);
      throw error;
    });
    if (!isJsonObject(json)) throw invalidResponse();
    if (status === 200) return json;
    throw new IdentityServerError(status, json);
  }

  async #fetch(
    url: URL,
    request: Partial<OutboundRequest>,
  ): Promise<{ status: number; json: JsonValue | undefined }> {
    const { status, body } = await this.#http.fetch(url, {
      ...request,
      timeout,
      maxBody: maxBytes,
    });
    try {
      return { status, json: parseJson(body.toString('utf8')) };
    } catch {
      return { status, json: undefined };
    }
  }
}

/**
 * An error response of an identity server. Clients receive another status and message: after a 401, a client would
 * believe that its session on this server has ended.
 */
class IdentityServerError extends MatrixError {
  /** The errcode that the identity server sent; `errcode` is the one that clients receive. */
  readonly code: string;

  constructor(status: number, { errcode }: JsonObject) {
    const code = typeof errcode === 'string' ? errcode : 'M_UNKNOWN';
    const refused = status === 401 || status === 403;
    const shownCode = passedOnCodes.has(code) ? code : refused ? 'M_FORBIDDEN' : 'M_UNKNOWN';
    super(
      shownCode === 'M_UNKNOWN' ? 502 : refused ? 403 : 400,
      shownCode,
      `The identity server answered ${code}`,
    );
    this.code = code;
  }
}

const invalidResponse = () => unknown('The identity server sent an invalid response', 502);
