import { FederationError, RemoteError, ServerUnavailable } from '../../../federation-client/index.ts';
import type { BuiltEvent, JsonObject } from '../../../protocol/index.ts';
import { supportedVersions } from '../handshake.ts';
import type { MembershipPeers, MembershipRequest } from '../peers.ts';
import { buildFromTemplate, type EventBuildDeps } from '../templates/event-from-template.ts';
import { checkTemplate } from '../templates/template-check.ts';
import { isServerFailure } from '../try-servers.ts';

/** Who is still to hear that an invite was turned down, or a knock taken back. */
export type LeaveRecipients = {
  /** Who has invited the user or taken the knock: each of them hears it. */
  readonly each: readonly string[];
  /** Who may be in the room as well: one of them hears it when nobody else has taken it. */
  readonly others: readonly string[];
};

export type LeaveToSend = {
  readonly roomId: string;
  readonly userId: string;
  /** The room version of the invite: some servers do not say which one it is. */
  readonly version: string;
  readonly content: JsonObject;
};

export interface SendLeaveDeps extends EventBuildDeps {
  readonly peers: Pick<MembershipPeers, 'fetchEventTemplate' | 'sendLeave'>;
}

export interface SentLeave {
  /** The event that the first of them has taken. */
  readonly event: BuiltEvent | undefined;
  /** Those who could not be reached. */
  readonly left: LeaveRecipients;
}

/** A server that refuses has nothing to end: the user is not invited there, or not any more. */
type Answer = BuiltEvent | 'refused' | 'unreached';

/**
 * Tells one server after the other that a user leaves a room that this server is not in. By what each of them says of
 * the room: the event may be another one for each, and where all are in the same room, all but the first refuse.
 * Source: server-server API, "Leaving Rooms (Rejecting Invites)".
 * @param request its signal ends the asking; who was not asked by then counts as not reached
 */
export async function sendLeave(
  deps: SendLeaveDeps,
  leave: LeaveToSend,
  { each, others }: LeaveRecipients,
  request: MembershipRequest & { readonly signal: AbortSignal },
): Promise<SentLeave> {
  let event: BuiltEvent | undefined;
  const ask = async (servers: readonly string[], isEnough: () => boolean) => {
    const unreached: string[] = [];
    for (const server of servers) {
      if (isEnough()) break;
      const answer = request.signal.aborted ? 'unreached' : await handIn(deps, leave, server, request);
      if (answer === 'unreached') unreached.push(server);
      else if (answer !== 'refused') event ??= answer;
    }
    return unreached;
  };
  const left = await ask(each, () => false);
  const leftOthers = await ask(others, () => event !== undefined);
  return { event, left: { each: left, others: event ? [] : leftOthers } };
}

/** Has a server take the event, made by the rules of the version that this server states. */
async function handIn(
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
    const expected = { server, roomId, userId, membership: 'leave', usualVersion: version } as const;
    const template = checkTemplate(prepared, expected);
    const own = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
    const ownContent = { ...content, membership: 'leave' };
    const built = buildFromTemplate(
      template.references,
      { ...own, content: ownContent },
      template.version,
      deps,
    );
    const { eventId, pdu } = built.event;
    await peers.sendLeave(server, { roomId, eventId, event: pdu }, request);
    return built;
  } catch (error) {
    if (request.signal.aborted || isAway(error)) return 'unreached';
    if (isServerFailure(error)) return 'refused';
    throw error;
  }
}

const isAway = (error: unknown) =>
  error instanceof FederationError &&
  (error instanceof ServerUnavailable || (error instanceof RemoteError && error.isServerFault));
