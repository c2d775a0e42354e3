import { hash } from 'node:crypto';
import type { ExpressionBuilder } from 'kysely';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Writer, writerFor } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { OAuthError } from '../oauth-error.ts';
import type { OAuthTables } from '../tables.ts';
import { type ClientMetadata, checkClientMetadata } from './client-metadata.ts';

/**
 * Refuses a grant type that a client has not registered. Source: RFC 6749, section 5.2.
 * @throws OAuthError unauthorized_client
 */
export function requireGrantType({ metadata }: Pick<Client, 'metadata'>, type: string): void {
  if (metadata.grant_types.includes(type)) return;
  throw new OAuthError('unauthorized_client', `The client has not registered the grant type ${type}`);
}

/** A registered client. */
export interface Client {
  readonly clientId: string;
  readonly metadata: ClientMetadata;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When the client was last registered or used, in milliseconds since the epoch; lags by up to a day. */
  readonly lastUsedAt: number;
}

export interface ClientsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/**
 * Maximum number of registered clients. Beyond it, clients without sessions are deleted: first those that never had a
 * session, then those that were used longest ago.
 */
const maxClients = 10_000;

/** Maximum characters of the stored metadata of a client; known clients have about 1,000. */
const maxMetadata = 8_192;

/** Milliseconds after which a use is written to `last_used_at` again. */
const usePrecision = 86_400_000;

/** Milliseconds since the last use after which a client without sessions is deleted. */
const unusedLifetime = 365 * 86_400_000;

/**
 * The clients that have registered. Clients with the same metadata share a registration, whose id is a digest of the
 * metadata. Source: client-server API, "Client registration"; RFC 7591.
 */
export class Clients {
  readonly #deps: ClientsDeps;
  readonly #maxClients: number;

  /** @param limit maximum number of registrations */
  constructor(deps: ClientsDeps, limit = maxClients) {
    this.#deps = deps;
    this.#maxClients = limit;
  }

  /**
   * Registers a client; a client with the same metadata as a registered one shares its registration.
   * @throws OAuthError invalid_client_metadata, invalid_redirect_uri
   */
  async register(body: JsonObject): Promise<Pick<Client, 'clientId' | 'metadata'>> {
    const metadata = checkClientMetadata(body);
    const text = JSON.stringify(metadata);
    if (text.length > maxMetadata)
      throw new OAuthError('invalid_client_metadata', 'The metadata is too long');
    const clientId = hash('sha256', text, 'base64url').slice(0, 32);
    const now = this.#deps.clock.now();
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      const registered = await readClient(writer, clientId);
      if (registered === undefined) {
        const row = { client_id: clientId, metadata: text, created_at: now, last_used_at: now };
        await writer
          .insertInto('oauth_clients')
          .values(row)
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        await deleteSurplus(writer, this.#maxClients);
      } else if (registered.last_used_at < now - usePrecision) {
        await writeUse(writer, clientId, now);
      }
    });
    return { clientId, metadata };
  }

  /** Returns a registered client; `undefined` for an unknown id. */
  async find(clientId: string): Promise<Client | undefined> {
    if (!/^[\w-]{1,64}$/.test(clientId)) return undefined;
    const row = await readClient(this.#deps.database.reader<OAuthTables>(), clientId);
    if (row === undefined) return undefined;
    const metadata = JSON.parse(row.metadata) as ClientMetadata;
    return { clientId, metadata, createdAt: row.created_at, lastUsedAt: row.last_used_at };
  }

  /**
   * Returns a registered client.
   * @throws OAuthError invalid_client when no client with this id is registered
   */
  async get(clientId: string): Promise<Client> {
    const client = await this.find(clientId);
    if (client === undefined)
      throw new OAuthError('invalid_client', 'Unknown client: it must register again');
    return client;
  }

  /**
   * Records, in the transaction that opens or refreshes a session, that a client is used, so that it is not deleted:
   * clients store their id for years and do not register again.
   */
  async markUsedIn(writer: AnyWriter, { clientId, createdAt, lastUsedAt }: Client): Promise<void> {
    const now = this.#deps.clock.now();
    const isFirstUse = lastUsedAt === createdAt && now > createdAt;
    if (isFirstUse || lastUsedAt < now - usePrecision)
      await writeUse(writerFor<OAuthTables>(writer), clientId, now);
  }

  /** Deletes the registrations that have no session and were not used for a year. */
  async deleteUnused(): Promise<void> {
    const unusedSince = this.#deps.clock.now() - unusedLifetime;
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer
        .deleteFrom('oauth_clients')
        .where('last_used_at', '<', unusedSince)
        .where((query) => query.not(query.exists(sessionsOfClient(query))))
        .execute();
    });
  }
}

async function writeUse(writer: Writer<OAuthTables>, clientId: string, now: number): Promise<void> {
  await writer
    .updateTable('oauth_clients')
    .set({ last_used_at: now })
    .where('client_id', '=', clientId)
    .execute();
}

/** Returns the subquery that finds the sessions of a client, by the index of their `client_id`. */
const sessionsOfClient = (query: ExpressionBuilder<OAuthTables, 'oauth_clients'>) =>
  query
    .selectFrom('oauth_sessions')
    .select('oauth_sessions.client_id')
    .whereRef('oauth_sessions.client_id', '=', 'oauth_clients.client_id');

const readClient = (reader: Pick<Writer<OAuthTables>, 'selectFrom'>, clientId: string) =>
  reader.selectFrom('oauth_clients').selectAll().where('client_id', '=', clientId).executeTakeFirst();

/**
 * Deletes registrations when there are more than the maximum number: the surplus and 1 % of the maximum, so that the next
 * registrations need no search. Registrations with sessions stay.
 */
async function deleteSurplus(writer: Writer<OAuthTables>, limit: number): Promise<void> {
  const { count } = await writer
    .selectFrom('oauth_clients')
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) <= limit) return;
  const surplus = Number(count) - limit + Math.floor(limit / 100);
  // A client whose `last_used_at` equals `created_at` has never had a session.
  const oldest = await writer
    .selectFrom('oauth_clients')
    .select('client_id')
    .where((query) => query.not(query.exists(sessionsOfClient(query))))
    .orderBy((query) => query.case().when('last_used_at', '>', query.ref('created_at')).then(1).else(0).end())
    .orderBy('last_used_at')
    .limit(surplus)
    .execute();
  const ids = oldest.map((row) => row.client_id);
  if (ids.length > 0) await writer.deleteFrom('oauth_clients').where('client_id', 'in', ids).execute();
}
