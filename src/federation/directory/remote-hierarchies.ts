import { FederationError, type QueriesApi } from '../../federation-client/index.ts';
import type { ResponseBudget } from '../../kernel/outbound/index.ts';
import { isServerName, type JsonObject, MatrixError } from '../../protocol/index.ts';

/** Timeout in milliseconds for each server: a client is waiting, and other servers may answer. */
const requestTimeout = 15_000;

/** Requests hierarchies of remote spaces and rooms from other servers. */
export class RemoteHierarchies {
  readonly #queries: QueriesApi;
  readonly #serverName: string;

  constructor(queries: QueriesApi, serverName: string) {
    this.#queries = queries;
    this.#serverName = serverName;
  }

  /**
   * Returns the response of the first server that knows the room; `undefined` when none does.
   * @param budget what the responses of all servers together may cost
   */
  async hierarchy(
    roomId: string,
    via: readonly string[],
    suggestedOnly: boolean,
    budget: ResponseBudget,
  ): Promise<JsonObject | undefined> {
    for (const server of new Set(via)) {
      if (server === this.#serverName || !isServerName(server)) continue;
      try {
        return await this.#queries.hierarchy(server, roomId, suggestedOnly, {
          timeout: requestTimeout,
          budget,
        });
      } catch (error) {
        // The server is outside of the federation or unreachable, does not know the room, or sends a malformed
        // response: the request is sent to the next server.
        if (!(error instanceof FederationError || error instanceof MatrixError)) throw error;
      }
    }
    return undefined;
  }
}
