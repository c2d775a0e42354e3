import { IpRangeSet } from '../kernel/config/index.ts';
import { openPushers, type Pushers } from '../pushers/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Conversations } from './conversations.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

interface Deps {
  readonly kernel: Kernel;
  readonly pushers: Pushers;
  readonly rooms: Rooms;
  readonly conversations: Conversations;
  readonly federation: Federation;
}

/** Opens pushers, and starts to send notifications; to be called before jobs are started. */
export async function startPushers(
  { kernel, pushers, rooms, conversations, federation }: Deps,
  opened: OpenedSlices,
): Promise<void> {
  const { configuration } = kernel;
  const slice = await openPushers({
    ...kernel,
    log: kernel.namedLog('push'),
    engine: rooms.engine,
    receipts: conversations.receipts,
    http: federation.http,
    pushers,
    notified: conversations.push.eventNotifications,
    unread: conversations.push.badgeCounts,
    allowsPlainHttp: plainHttpCheck(configuration.outbound.ip_range_whitelist),
    options: configuration.push.push,
  });
  opened.add('pushers', slice);
}

/**
 * Returns whether a push gateway at a host may be reached without TLS: only at an address that the operator allows by
 * name, since the specification demands https and a gateway on the same machine needs none.
 */
function plainHttpCheck(whitelist: readonly string[]): (host: string) => boolean {
  const allowed = new IpRangeSet(whitelist);
  return (host) => allowed.contains(host === 'localhost' ? '127.0.0.1' : host);
}
