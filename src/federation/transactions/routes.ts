import { Type } from 'typebox';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Transactions } from './transactions.ts';

/** Maximum bytes of a transaction: 50 events of 64 KiB, and 100 EDUs of similar size. */
const bodyLimit = 200 * 65_536;

/** Returns the route on which other servers send transactions. Source: server-server API, "Transactions". */
export function transactionRoutes(transactions: Transactions): Route[] {
  return [
    route(
      {
        operationId: 'sendTransaction',
        method: 'PUT',
        path: '/_proto/federation/v1/send/:txnId',
        auth: 'server',
        body: Type.Object({}),
        bodyLimit,
        response: Type.Object({ pdus: Type.Record(Type.String(), Type.Object({})) }),
      },
      async ({ params: { txnId }, origin, body }) =>
        new Reply(200, await transactions.receive(origin, txnId, body as JsonObject)),
    ),
  ];
}
