import type { IdentityServerSession, IdentityServers } from '../../identity-servers/index.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import type { ThirdPartyIdTables } from '../tables.ts';
import { deletePublished, insertPublished, listPublished, type PublicationRow } from './publication-store.ts';

/** Signs a request to an identity server. Returns the `Authorization` header. */
export type SignRequest = (request: {
  readonly method: string;
  readonly uri: string;
  readonly destination: string;
  /** Canonical JSON. */
  readonly content: string;
}) => string;

export interface PublishedAddressesDeps {
  readonly database: Database;
  readonly identityServers: Pick<IdentityServers, 'bind' | 'unbind'>;
  readonly sign: SignRequest;
}

/** Maximum number of simultaneous requests to identity servers to forget the addresses of one user. */
const parallel = 5;

/** Addresses that users have published at identity servers, so that other users find them there. */
export class PublishedAddresses {
  readonly #deps: PublishedAddressesDeps;

  constructor(deps: PublishedAddressesDeps) {
    this.#deps = deps;
  }

  /** Publishes an address that the identity server has validated. @throws MatrixError of the identity server */
  async publish(userId: string, session: IdentityServerSession): Promise<void> {
    const { medium, address } = await this.#deps.identityServers.bind(userId, session);
    const row = { user_id: userId, medium, address, server: session.server };
    await this.#write((writer) => insertPublished(writer, row));
  }

  /**
   * Sends identity servers a request to forget an address.
   * @param server the identity server that receives the request; by default all identity servers where the user has
   * published the address
   * @returns whether at least one server received the request, and all of them have forgotten the address
   */
  async unpublish(
    userId: string,
    medium: string,
    address: string,
    server: string | undefined,
  ): Promise<boolean> {
    const known = (await this.#list(userId)).filter(
      (row) => row.medium === medium && row.address === address,
    );
    const rows = server === undefined ? known : [{ user_id: userId, medium, address, server }];
    return rows.length > 0 && this.#forget(rows);
  }

  /**
   * Sends identity servers a request to forget all addresses that a user has published.
   * @param server as in `unpublish`
   * @returns whether all addresses have been forgotten
   */
  async unpublishAll(userId: string, server: string | undefined): Promise<boolean> {
    const known = await this.#list(userId);
    return this.#forget(server === undefined ? known : known.map((row) => ({ ...row, server })));
  }

  async #forget(rows: readonly PublicationRow[]): Promise<boolean> {
    const { identityServers, sign } = this.#deps;
    const results = await mapConcurrently(rows, parallel, async (row) => {
      const { server, user_id: userId, medium, address } = row;
      const isForgotten = await identityServers.unbind({ server, userId, medium, address }, sign);
      if (isForgotten) await this.#write((writer) => deletePublished(writer, row));
      return isForgotten;
    });
    return results.every((isForgotten) => isForgotten);
  }

  #list(userId: string): Promise<PublicationRow[]> {
    return listPublished(this.#deps.database.reader<ThirdPartyIdTables>(), userId);
  }

  #write(work: (writer: Writer<ThirdPartyIdTables>) => Promise<void>): Promise<void> {
    return this.#deps.database.transaction<ThirdPartyIdTables, void>(work);
  }
}
