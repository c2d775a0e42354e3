import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Writer, writerFor } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { OAuthError } from '../oauth-error.ts';
import type { OAuthTables } from '../tables.ts';
import { type ClientMetadata, checkClientMetadata } from './client-metadata.ts';

/** A registered client. */
export interface Client {
  readonly clientId: string;
  readonly metadata: ClientMetadata;
  /** When it was last registered or used, milliseconds since the epoch, up to a day too early. */
  readonly lastUsedAt: number;
}

export interface ClientsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/** Maximum number of registrations; the one that was used longest ago and has no session is deleted first. */
const maxClients = 10_000;

/** Milliseconds after which `last_used_at` is written again, and after which a client without sessions is deleted. */
const [usePrecision, unusedLifetime] = [86_400_000, 365 * 86_400_000];

/**
 * The clients that have registered. Clients with the same metadata share a registration, whose id is a digest of it.
 * Source: client-server API, "Client registration"; RFC 7591.
 */
export class Clients {
  readonly #deps: ClientsDeps;
  readonly #maxClients: number;

  /** @param limit maximum number of registrations */
  constructor(deps: ClientsDeps, limit = maxClients) {
    this.#deps = deps;
    this.#maxClients = limit;
  }

  /** @throws OAuthError invalid_client_metadata, invalid_redirect_uri */
  async register(body: JsonObject): Promise<Client> {
    const metadata = checkClientMetadata(body);
    const text = JSON.stringify(metadata);
    const clientId = hash('sha256', text, 'base64url').slice(0, 32);
    const now = this.#deps.clock.now();
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      const known = await readClient(writer, clientId);
      if (known === undefined) {
        const row = { client_id: clientId, metadata: text, created_at: now, last_used_at: now };
        await writer
          .insertInto('oauth_clients')
          .values(row)
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        await deleteSurplus(writer, this.#maxClients);
      } else if (known.last_used_at < now - usePrecision) {
        await writeUse(writer, clientId, now);
      }
    });
    return { clientId, metadata, lastUsedAt: now };
  }

  async find(clientId: string): Promise<Client | undefined> {
    if (!/^[\w-]{1,64}$/.test(clientId)) return undefined;
    const row = await readClient(this.#deps.database.reader<OAuthTables>(), clientId);
    if (row === undefined) return undefined;
    const metadata = JSON.parse(row.metadata) as ClientMetadata;
    return { clientId, metadata, lastUsedAt: row.last_used_at };
  }

  /** @throws OAuthError invalid_client when the client has not registered */
  async get(clientId: string): Promise<Client> {
    const client = await this.find(clientId);
    if (client === undefined)
      throw new OAuthError('invalid_client', 'Unknown client: it must register again');
    return client;
  }

  /**
   * Records that a client opens or refreshes a session, in the transaction of that: clients store their id for years and
   * do not register again.
   */
  async markUsedIn(writer: AnyWriter, { clientId, lastUsedAt }: Client): Promise<void> {
    const now = this.#deps.clock.now();
    if (lastUsedAt < now - usePrecision) await writeUse(writerFor<OAuthTables>(writer), clientId, now);
  }

  /** Deletes the registrations that have no session and were not used for a year. */
  async deleteUnused(): Promise<void> {
    const before = this.#deps.clock.now() - unusedLifetime;
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer
        .deleteFrom('oauth_clients')
        .where('last_used_at', '<', before)
        .where('client_id', 'not in', (query) => query.selectFrom('oauth_sessions').select('client_id'))
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

const readClient = (reader: Pick<Writer<OAuthTables>, 'selectFrom'>, clientId: string) =>
  reader.selectFrom('oauth_clients').selectAll().where('client_id', '=', clientId).executeTakeFirst();

/** Deletes the registrations above the maximum number; those with sessions stay. */
async function deleteSurplus(writer: Writer<OAuthTables>, limit: number): Promise<void> {
  const { count } = await writer
    .selectFrom('oauth_clients')
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  const surplus = Number(count) - limit;
  if (surplus <= 0) return;
  const oldest = await writer
    .selectFrom('oauth_clients')
    .select('client_id')
    .where('client_id', 'not in', (query) => query.selectFrom('oauth_sessions').select('client_id'))
    .orderBy('last_used_at')
    .limit(surplus)
    .execute();
  const ids = oldest.map((row) => row.client_id);
  if (ids.length > 0) await writer.deleteFrom('oauth_clients').where('client_id', 'in', ids).execute();
}
