import {
  EduRates,
  FederationSender,
  PresenceEduSender,
  presenceHandler,
  ReceiptEduSender,
  receiptHandler,
  registerOutboxUpkeep,
  TrafficMetrics,
  Transactions,
  TypingEduSender,
  transactionRoutes,
  typingHandler,
} from '../federation/index.ts';
import { TransactionsApi } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { knownServers } from '../room-engine/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Conversations } from './conversations.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { Shutdown } from './shutdown.ts';

type EduSources = Pick<Conversations, 'typing' | 'receipts' | 'presence'>;

interface Deps<Sources extends EduSources = Conversations> {
  readonly kernel: Kernel;
  readonly federation: Federation;
  readonly rooms: Rooms;
  readonly conversations: Sources;
}

type EduDeps = Deps<EduSources>;

/** Lets events and EDUs go to other servers and come from them. Before jobs are started. */
export async function startFederationTraffic(deps: Deps, shutdown: Shutdown): Promise<Route[]> {
  const { kernel, federation, rooms } = deps;
  const log = kernel.namedLog('federation');
  const metrics = kernel.metrics && openMetrics(kernel);
  const sender = new FederationSender({
    ...kernel,
    ...federation,
    log,
    engine: rooms.engine,
    api: new TransactionsApi(federation.requests),
    ...(metrics && { observer: metrics }),
  });
  metrics?.watch(sender);
  exchangeEdus(deps, sender, shutdown);
  const transactions = new Transactions({
    ...kernel,
    incoming: rooms.incoming,
    eduHandlers: federation.eduHandlers,
    ...(metrics && { observer: metrics }),
  });
  transactions.registerUpkeep(kernel.jobs);
  registerOutboxUpkeep(kernel.jobs, kernel);
  shutdown.add('federation sender', () => sender.stop());
  await sender.start();
  return transactionRoutes(transactions);
}

function openMetrics({ metrics, clock, configuration, database, serverName }: Kernel) {
  if (!metrics) return undefined;
  const { federation_metrics_domains: domains } = configuration.federation;
  const traffic = new TrafficMetrics({ metrics, clock, domains });
  if (configuration.observability.metrics_flags.known_servers) {
    traffic.watchServers(async () => (await knownServers(database, serverName)).size);
  }
  return traffic;
}

/** Lets other servers hear of who types, has read and is online, and hears of it from them. */
export function exchangeEdus(deps: EduDeps, sender: FederationSender, shutdown: Shutdown): void {
  takeEdus(deps);
  tellEdus(deps, sender, shutdown);
}

/** What other servers tell of who types, has read, and is online. */
function takeEdus({ kernel, federation: { eduHandlers }, rooms, conversations }: EduDeps): void {
  const rates = new EduRates(kernel.clock);
  const shared = { ...kernel, ...rooms, ...conversations, rates };
  eduHandlers.register('m.typing', typingHandler(shared));
  eduHandlers.register('m.receipt', receiptHandler(shared));
  eduHandlers.register('m.presence', presenceHandler(shared));
}

/** What they are told. */
function tellEdus(
  { kernel, rooms, conversations }: EduDeps,
  sender: FederationSender,
  shutdown: Shutdown,
): void {
  const log = kernel.namedLog('federation');
  const shared = { ...kernel, ...conversations, engine: rooms.engine, log, sender };
  const { federation_rr_transactions_per_room_per_second: transactionsPerSecond } =
    kernel.configuration.federation;
  const typing = new TypingEduSender(shared);
  const receipts = new ReceiptEduSender({ ...shared, transactionsPerSecond });
  new PresenceEduSender(shared);
  shutdown.add('typing for other servers', () => typing.stop());
  shutdown.add('receipts for other servers', () => receipts.stop());
}
