import { BriefMap } from '../../kernel/brief-map.ts';

/** Maximum number of concurrent requests for pushers whose last attempt failed. */
const maxFailing = 50;

/** Maximum number of concurrent requests for all other pushers. */
const maxHealthy = 200;

/**
 * Maximum number of concurrent requests to one gateway for pushers whose last attempt failed. All users of an app share
 * its gateway.
 */
const maxFailingOfGateway = 8;

/**
 * Maximum number of concurrent requests to one gateway for all other pushers: the number of connections that outbound
 * requests open to one server.
 */
const maxHealthyOfGateway = 16;

/** Maximum number of concurrent requests of one user's pushers in each lane, so that a few users cannot fill it. */
const maxPerUser = 5;

/** A share of the concurrent requests, and the requests that wait for a slot in this share. */
interface Lane {
  /** Number of free slots. */
  free: number;
  /** Maximum number of running requests to one gateway. */
  readonly maxPerGateway: number;
  /** Number of running requests by the host of the gateway. */
  readonly hosts: BriefMap<string, number>;
  /** Number of running requests by user. */
  readonly users: BriefMap<string, number>;
  /** Requests that wait for a slot, oldest first. */
  readonly waiting: WaitingRequest[];
}

/** A request to a gateway, for a user's pusher. */
interface GatewayRequest {
  readonly host: string;
  readonly userId: string;
}

interface WaitingRequest extends GatewayRequest {
  /** Called after the request has been given a slot. */
  readonly start: () => void;
}

/**
 * Bounds concurrent requests to push gateways. A gateway that does not answer occupies only its own share, as do the
 * pushers of one user. Pushers whose last attempt failed have a lane of their own, so that they never delay the others.
 */
export class GatewaySlots {
  readonly #healthy = newLane(maxHealthy, maxHealthyOfGateway);
  readonly #failing = newLane(maxFailing, maxFailingOfGateway);

  /**
   * Runs `task` as soon as there is a slot for its gateway and user.
   * @param hasFailed whether the pusher's last attempt failed
   */
  async run<T>(request: GatewayRequest, hasFailed: boolean, task: () => Promise<T>): Promise<T> {
    const lane = hasFailed ? this.#failing : this.#healthy;
    if (this.#canStart(lane, request)) this.#take(lane, request);
    else await new Promise<void>((resolve) => lane.waiting.push({ ...request, start: resolve }));
    try {
      return await task();
    } finally {
      lane.free++;
      decrement(lane.hosts, request.host);
      decrement(lane.users, request.userId);
      this.#startNext(lane);
    }
  }

  #canStart({ free, maxPerGateway, hosts, users }: Lane, { host, userId }: GatewayRequest): boolean {
    return free > 0 && (hosts.get(host) ?? 0) < maxPerGateway && (users.get(userId) ?? 0) < maxPerUser;
  }

  #take(lane: Lane, { host, userId }: GatewayRequest): void {
    lane.free--;
    lane.hosts.set(host, (lane.hosts.get(host) ?? 0) + 1);
    lane.users.set(userId, (lane.users.get(userId) ?? 0) + 1);
  }

  #startNext(lane: Lane): void {
    const index = lane.waiting.findIndex((waiting) => this.#canStart(lane, waiting));
    const [next] = index === -1 ? [] : lane.waiting.splice(index, 1);
    if (!next) return;
    this.#take(lane, next);
    next.start();
  }
}

const newLane = (free: number, maxPerGateway: number): Lane => ({
  free,
  maxPerGateway,
  hosts: new BriefMap(),
  users: new BriefMap(),
  waiting: [],
});

function decrement(counts: BriefMap<string, number>, key: string): void {
  const newCount = (counts.get(key) ?? 1) - 1;
  if (newCount === 0) counts.delete(key);
  else counts.set(key, newCount);
}
