import { hash } from 'node:crypto';
import { OutboundError, type OutboundHttp, type OutboundRequest } from '../kernel/outbound/index.ts';
import {
  isJsonObject,
  isUserId,
  type JsonObject,
  type JsonValue,
  MatrixError,
  parseJson,
  unknown,
} from '../protocol/index.ts';
import type { ThirdPartyAddress } from './address.ts';
import { readStoredInvite, type StoredInvite } from './stored-invite.ts';

/** Milliseconds that an identity server has for an answer: somebody waits. */
const patience = 10_000;

/** Bytes of an answer. */
const maxBytes = 65_536;

/** Errors of an identity server that clients can do something about; others they need not know. */
const forClients = new Set(['M_TERMS_NOT_SIGNED', 'M_THREEPID_IN_USE', 'M_UNRECOGNIZED', 'M_LIMIT_EXCEEDED']);

/** Asks identity servers, which users name and whom nobody trusts with more than that. Source: identity service API. */
export class IdentityServers {
  readonly #http: Pick<OutboundHttp, 'fetch'>;

  constructor(http: Pick<OutboundHttp, 'fetch'>) {
    this.#http = http;
  }

  /**
   * Whose an address is; `undefined` when nobody has said that it is theirs.
   * Source: identity service API, "Association lookup".
   * @throws MatrixError
   */
  async lookUp(address: ThirdPartyAddress): Promise<string | undefined> {
    try {
      return await this.#lookUp(address);
    } catch (error) {
      // It may have got a new pepper between the two requests.
      if (error instanceof IdentityServerError && error.code === 'M_INVALID_PEPPER')
        return this.#lookUp(address);
      throw error;
    }
  }

  async #lookUp({ server, accessToken, medium, address }: ThirdPartyAddress): Promise<string | undefined> {
    const details = await this.#request(server, accessToken, '/hash_details');
    const { algorithms, lookup_pepper: pepper } = details;
    if (!Array.isArray(algorithms) || typeof pepper !== 'string') throw nonsense();
    const isHashed = algorithms.includes('sha256');
    if (!isHashed && !algorithms.includes('none')) throw nonsense();
    const sought = isHashed
      ? hash('sha256', `${address} ${medium} ${pepper}`, 'base64url')
      : `${address} ${medium}`;
    const body = { addresses: [sought], algorithm: isHashed ? 'sha256' : 'none', pepper };
    const { mappings } = await this.#request(server, accessToken, '/lookup', body);
    if (!isJsonObject(mappings)) throw nonsense();
    const userId = Object.hasOwn(mappings, sought) ? mappings[sought] : undefined;
    if (userId === undefined) return undefined;
    if (!isUserId(userId)) throw nonsense();
    return userId;
  }

  /**
   * Lets an identity server invite somebody whom nobody knows yet, and tell when it does.
   * Source: identity service API, "Invitation storage".
   * @throws MatrixError, M_THREEPID_IN_USE when somebody has the address by now
   */
  async storeInvite(
    { server, accessToken, medium, address }: ThirdPartyAddress,
    details: JsonObject,
  ): Promise<StoredInvite> {
    const body = { ...details, medium, address };
    const stored = readStoredInvite(await this.#request(server, accessToken, '/store-invite', body));
    if (!stored) throw nonsense();
    return stored;
  }

  /**
   * Whether a key of a third-party invite still counts. Whoever cannot be asked has not said that it does.
   * Source: client-server API, "Third-party invites"; identity service API, `GET /pubkey/isvalid`.
   * @param validityUrl as the event has it
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
      if (error instanceof OutboundError) throw unknown('The identity server can not be reached', 502);
      throw error;
    });
    if (!isJsonObject(json)) throw nonsense();
    if (status === 200) return json;
    throw new IdentityServerError(status, json);
  }

  async #fetch(
    url: URL,
    request: Partial<OutboundRequest>,
  ): Promise<{ status: number; json: JsonValue | undefined }> {
    const { status, body } = await this.#http.fetch(url, {
      ...request,
      timeout: patience,
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
 * An identity server has refused. Its words are not passed on: a client that is told 401 would think that its session
 * here has ended.
 */
class IdentityServerError extends MatrixError {
  readonly code: string;

  constructor(status: number, { errcode }: JsonObject) {
    const code = typeof errcode === 'string' ? errcode : 'M_UNKNOWN';
    const refused = status === 401 || status === 403;
    const told = forClients.has(code) ? code : refused ? 'M_FORBIDDEN' : 'M_UNKNOWN';
    super(told === 'M_UNKNOWN' ? 502 : refused ? 403 : 400, told, `The identity server answered ${code}`);
    this.code = code;
  }
}

const nonsense = () => unknown('The identity server does not answer as it should', 502);
