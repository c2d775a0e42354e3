import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import { invalidParam } from '../protocol/index.ts';
import type { ReceiptType } from './receipt.ts';
import type { Receipts } from './receipts.ts';

const paths = {
  receipt: [
    '/_proto/client/v3/rooms/:roomId/receipt/:receiptType/:eventId',
    '/_proto/client/r0/rooms/:roomId/receipt/:receiptType/:eventId',
  ],
  markers: ['/_proto/client/v3/rooms/:roomId/read_markers', '/_proto/client/r0/rooms/:roomId/read_markers'],
} as const;

const optionalEventId = Type.Optional(Type.String());

/**
 * Endpoints that set receipts and read markers. Source: client-server API, "Receipts" and "Read and unread markers".
 */
export function receiptRoutes(receipts: Receipts): Route[] {
  return [
    route(
      {
        operationId: 'postReceipt',
        method: 'POST',
        path: paths.receipt,
        auth: 'user',
        body: Type.Object({ thread_id: Type.Optional(Type.Unknown()) }),
        response: Type.Object({}),
      },
      async ({ params: { roomId, receiptType, eventId }, requester: { userId }, body }) => {
        const threadId = threadIdOfBody(body);
        if (receiptType === 'm.fully_read') {
          if (threadId !== undefined) throw invalidParam('thread_id is not allowed for m.fully_read');
          await receipts.markFullyRead(userId, roomId, eventId);
        } else await receipts.send({ userId, roomId, type: receiptTypeOf(receiptType), eventId, threadId });
        return {};
      },
    ),
    route(
      {
        operationId: 'setReadMarker',
        method: 'POST',
        path: paths.markers,
        auth: 'user',
        body: Type.Object({
          'm.fully_read': optionalEventId,
          'm.read': optionalEventId,
          'm.read.private': optionalEventId,
        }),
        response: Type.Object({}),
      },
      async ({ params: { roomId }, requester: { userId }, body }) => {
        for (const type of ['m.read', 'm.read.private'] as const) {
          const eventId = body[type];
          if (eventId !== undefined) {
            await receipts.send({ userId, roomId, type, eventId, threadId: undefined });
          }
        }
        const fullyRead = body['m.fully_read'];
        if (fullyRead !== undefined) await receipts.markFullyRead(userId, roomId, fullyRead);
        return {};
      },
    ),
  ];
}

function receiptTypeOf(text: string): ReceiptType {
  if (text === 'm.read' || text === 'm.read.private') return text;
  throw invalidParam('The receipt type must be m.read, m.read.private or m.fully_read');
}

/**
 * Returns the `thread_id` of a request body.
 * @throws MatrixError M_INVALID_PARAM, which the specification requires here instead of M_BAD_JSON
 */
function threadIdOfBody({ thread_id: threadId }: { thread_id?: unknown }): string | undefined {
  if (threadId === undefined) return undefined;
  if (typeof threadId !== 'string' || threadId === '') {
    throw invalidParam('thread_id must be a non-empty string');
  }
  return threadId;
}
