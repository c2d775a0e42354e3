import {
  EduHandlers,
  ephemeralEduHandlers,
  FederationSender,
  PresenceEduSender,
  ReceiptEduSender,
  TrafficMetrics,
  Transactions,
  TypingEduSender,
  transactionRoutes,
  trimOutboxHourly,
} from '../federation/index.ts';
import { TransactionsApi } from '../federation-client/index.ts';
import { knownServers } from '../room-engine/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Conversations } from './conversations.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

type EduSources = Pick<Conversations, 'typing' | 'receipts' | 'presence'>;

interface Deps<Sources extends EduSources = Conversations> {
  readonly kernel: Kernel;
  readonly federation: Federation;
  readonly rooms: Rooms;
  readonly conversations: Sources;
}

type EduDeps = Deps<EduSources>;

/**
 * Starts to send events and EDUs to remote servers, and to receive events and EDUs from them. Must be called before
 * jobs are started.
 */
export async function startFederationTraffic(deps: Deps, opened: OpenedSlices): Promise<FederationSender> {
  const { kernel, federation, rooms } = deps;
  const log = kernel.namedLog('federation');
  const metrics = openMetrics(kernel);
  const sender = new FederationSender({
    ...kernel,
    ...federation,
    log,
    engine: rooms.engine,
    api: new TransactionsApi(federation.requests),
    ...(metrics && { observer: metrics }),
  });
  metrics?.watch(sender);
  sendEdus(deps, sender, opened);
  const transactions = new Transactions({
    ...kernel,
    incoming: rooms.incoming,
    eduHandlers: new EduHandlers(log, [
      ...opened.eduHandlers,
      ephemeralEduHandlers({ ...kernel, ...rooms, ...deps.conversations }),
    ]),
    ...(metrics && { observer: metrics }),
  });
  trimOutboxHourly(kernel.jobs, kernel);
  opened.add('federation sender', {
    routes: transactionRoutes(transactions),
    stop: () => sender.stop(),
  });
  await sender.start();
  return sender;
}

/** Returns `undefined` where metrics are disabled. */
function openMetrics({ metrics, clock, configuration, database, serverName }: Kernel) {
  if (!metrics) return undefined;
  const { federation_metrics_domains: domains } = configuration.federation;
  const traffic = new TrafficMetrics({ metrics, clock, domains });
  if (configuration.observability.metrics_flags.known_servers) {
    traffic.watchServers(async () => (await knownServers(database, serverName)).size);
  }
  return traffic;
}

/** Starts to send EDUs about typing, receipts and presence to remote servers. */
export function sendEdus(
  { kernel, rooms, conversations }: EduDeps,
  sender: FederationSender,
  opened: OpenedSlices,
): void {
  const log = kernel.namedLog('federation');
  const shared = { ...kernel, ...conversations, engine: rooms.engine, log, sender };
  const { federation_rr_transactions_per_room_per_second: transactionsPerSecond } =
    kernel.configuration.federation;
  const typing = new TypingEduSender(shared);
  const receipts = new ReceiptEduSender({ ...shared, transactionsPerSecond });
  new PresenceEduSender(shared);
  opened.add('typing EDUs', { stop: () => typing.stop() });
  opened.add('receipt EDUs', { stop: () => receipts.stop() });
}
