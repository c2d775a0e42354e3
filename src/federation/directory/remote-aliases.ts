import { type AliasResponse, errorForClient, type QueriesApi } from '../../federation-client/index.ts';
import { invalidParam, MatrixError, notFound, parseRoomAlias } from '../../protocol/index.ts';

/** Resolves room aliases of other servers. */
export class RemoteAliases {
  readonly #queries: QueriesApi;

  constructor(queries: QueriesApi) {
    this.#queries = queries;
  }

  /**
   * Returns the room of an alias of another server.
   * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM; M_FORBIDDEN when `federation_domain_whitelist` excludes the server;
   * the error of the server when it refuses; 502 when it cannot be reached or sends an invalid response
   */
  async resolve(alias: string): Promise<AliasResponse> {
    const parts = parseRoomAlias(alias);
    if (!parts) throw invalidParam('The room alias is not valid');
    try {
      return await this.#queries.alias(parts.serverName, alias);
    } catch (error) {
      const shown = errorForClient(error);
      const isUnknown = shown instanceof MatrixError && shown.status === 404;
      throw isUnknown ? notFound(`Room alias ${alias} not found`) : shown;
    }
  }
}
