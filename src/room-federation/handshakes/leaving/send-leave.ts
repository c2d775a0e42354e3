import { FederationError, RemoteError, ServerUnavailable } from '../../../federation-client/index.ts';
import type { BuiltEvent, JsonObject } from '../../../protocol/index.ts';
import { supportedVersions } from '../handshake.ts';
import type { MembershipPeers, MembershipRequest } from '../peers.ts';
import { buildFromTemplate, type EventBuildDeps } from '../templates/event-from-template.ts';
import { checkTemplate } from '../templates/template-check.ts';
import { isServerFailure } from '../try-servers.ts';

/** The servers that have not received a leave. The field names are stored in the payload of jobs. */
export type LeaveRecipients = {
  /** Servers that invited the user or received the knock: each of them receives the leave. */
  readonly each: readonly string[];
  /**
   * Servers that may be in the room: the leave is sent to the first of them that accepts it, and only if no
   * server of `each` accepted it.
   */
  readonly others: readonly string[];
};

export type LeaveToSend = {
  readonly roomId: string;
  readonly userId: string;
  /** The room version of the invite, for servers whose event template does not name the version. */
  readonly version: string;
  readonly content: JsonObject;
};

export interface SendLeaveDeps extends EventBuildDeps {
  readonly peers: Pick<MembershipPeers, 'fetchEventTemplate' | 'sendLeave'>;
}

export interface SentLeave {
  /** The event that the first server accepted. */
  readonly event: BuiltEvent | undefined;
  /** The servers that were unreachable. */
  readonly remaining: LeaveRecipients;
}

/**
 * The result at one server. When a server refuses, the leave need not be sent to it again: the user is not, or no
 * longer, invited there.
 */
type Answer = BuiltEvent | 'refused' | 'unreachable';

/** Limits of sending a leave: `totalTimeout` is in milliseconds, for all servers together. */
interface SendLeaveRequest extends MembershipRequest {
  readonly totalTimeout: number;
}

/**
 * Sends a leave to one server after another. The leave for each server is built from the event
 * template of that server, so the events differ; where all servers are in the same room, all but the first refuse.
 * Source: server-server API, "Leaving Rooms (Rejecting Invites)".
 * @param request the remaining servers count as unreachable after its total timeout, or when its signal aborts
 */
export async function sendLeave(
  deps: SendLeaveDeps,
  leave: LeaveToSend,
  { each, others }: LeaveRecipients,
  { totalTimeout, ...request }: SendLeaveRequest,
): Promise<SentLeave> {
  const ending = new AbortController();
  const timer = deps.clock.setTimer(totalTimeout, () => ending.abort());
  const signal = request.signal ? AbortSignal.any([ending.signal, request.signal]) : ending.signal;
  try {
    return await sendToAll(deps, leave, { each, others }, { ...request, signal });
  } finally {
    timer.cancel();
  }
}

async function sendToAll(
  deps: SendLeaveDeps,
  leave: LeaveToSend,
  { each, others }: LeaveRecipients,
  request: MembershipRequest & { readonly signal: AbortSignal },
): Promise<SentLeave> {
  let event: BuiltEvent | undefined;
  const sendToEach = async (servers: readonly string[], shouldStop: () => boolean) => {
    const unreachable: string[] = [];
    for (const server of servers) {
      if (shouldStop()) break;
      const answer = request.signal.aborted
        ? 'unreachable'
        : await makeAndSendLeave(deps, leave, server, request);
      if (answer === 'unreachable') unreachable.push(server);
      else if (answer !== 'refused') event ??= answer;
    }
    return unreachable;
  };
  const remaining = await sendToEach(each, () => false);
  const remainingOthers = await sendToEach(others, () => event !== undefined);
  return { event, remaining: { each: remaining, others: event ? [] : remainingOthers } };
}

/** Does the make_leave and send_leave handshake with one server, in the room version that this server names. */
async function makeAndSendLeave(
  deps: SendLeaveDeps,
  { roomId, userId, version, content }: LeaveToSend,
  server: string,
  request: MembershipRequest & { readonly signal: AbortSignal },
): Promise<Answer> {
  const { peers } = deps;
  try {
    const prepared = await peers.fetchEventTemplate(
      server,
      'leave',
      { roomId, userId },
      supportedVersions,
      request,
    );
    const expected = { server, roomId, userId, membership: 'leave', defaultVersion: version } as const;
    const template = checkTemplate(prepared, expected);
    const memberEvent = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
    const leaveContent = { ...content, membership: 'leave' };
    const built = buildFromTemplate(
      template.references,
      { ...memberEvent, content: leaveContent },
      template.version,
      deps,
    );
    const { eventId, pdu } = built.event;
    await peers.sendLeave(server, { roomId, eventId, event: pdu }, request);
    return built;
  } catch (error) {
    if (request.signal.aborted || isUnreachable(error)) return 'unreachable';
    if (isServerFailure(error)) return 'refused';
    throw error;
  }
}

const isUnreachable = (error: unknown) =>
  error instanceof FederationError &&
  (error instanceof ServerUnavailable || (error instanceof RemoteError && error.isServerFault));
