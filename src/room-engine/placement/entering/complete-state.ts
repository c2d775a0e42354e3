import { notFound } from '../../../protocol/index.ts';
import type { PartialStateColumn } from '../../partial-state.ts';
import { withoutEnd } from '../../stored-event.ts';
import type { PreparedWrite, ReservePlace } from '../../timeline/event-writer.ts';
import type { Extremity } from '../../timeline/extremity.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { SuppliedState } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import type { BeforeStates } from '../states/before-state.ts';
import { type CurrentStateChange, resolveCurrentState } from '../states/current-state.ts';
import { PreparedCurrentState } from '../states/prepared-current-state.ts';
import { readOutOfBandMembers } from '../store.ts';
import { endOutOfBandMemberships, type OutOfBandMember } from './out-of-band-members.ts';
import { StateRevision } from './state-revision.ts';

/** The current state that results from the revised forward extremities. */
interface RevisedCurrentState {
  /**
   * The ids of the former current state group and of the state groups of the extremities: equal ids give an equal
   * result.
   */
  readonly resolvedFrom: string;
  readonly change: CurrentStateChange | undefined;
  readonly prepared: PreparedCurrentState | undefined;
}

/**
 * Completes the state of rooms that were joined with partial state: a state without most members (`omit_members`).
 * Source: server-server API, `PUT /send_join`, "omit_members".
 */
export class CompleteState {
  readonly #deps: PlacementDeps;
  readonly #beforeStates: BeforeStates;

  constructor(deps: PlacementDeps, before: BeforeStates) {
    this.#deps = deps;
    this.#beforeStates = before;
  }

  /**
   * Replaces the partial state before the join by the complete state, and revises the states of all events since the
   * join:
   * 1. waits until the events of the room are on disk;
   * 2. computes the state before the join and revises each event since the join in order (`StateRevision`): the state
   *    before the event, whether that state allows the event, and the state after the event;
   * 3. computes the forward extremities without the events that the revision rejects, and resolves the current state
   *    from them;
   * 4. writes the revised events, the current state and the end of the partial state in one transaction.
   *
   * Calls for one room must be serialized. Does nothing for rooms whose state is complete. With `lacksKeys`, the state
   * that replaces the partial one lacks events whose keys could not be fetched, so the room's state stays partial.
   * Source: server-server API, `PUT /send_join`, "omit_members".
   * @param state the state before the join; complete unless `lacksKeys` is set
   */
  async complete(roomId: string, state: SuppliedState, { lacksKeys = false } = {}): Promise<void> {
    const { heads } = this.#deps;
    const { resolver } = this.#deps.states;
    const initialHead = await heads.get(roomId);
    if (!initialHead) throw notFound('Unknown room');
    if (!initialHead.partial) return;
    await this.#waitForDisk(initialHead);
    const revision = await StateRevision.begin(
      this.#deps,
      this.#beforeStates,
      initialHead,
      initialHead.partial.joinEventId,
      state,
      lacksKeys,
    );
    let revised: RevisedCurrentState | undefined;
    try {
      for (;;) {
        const head = await heads.get(roomId);
        if (head !== initialHead || head.broken)
          throw new Error(
            'the head of the room is broken: an event could not be stored, or the room is being deleted',
          );
        // The caller serializes remote events, so only local users add events meanwhile, and the newest events of
        // local users are in memory.
        if ((head.recent[0]?.stream ?? 0) > revision.upTo) {
          await revision.catchUp();
          continue;
        }
        // An event that is added after this line changes the extremities, and the loop runs again.
        const extremities = head.extremities;
        const group = head.chain.id;
        const newEvents = head.recent.filter(({ stream = 0 }) => stream > revision.upTo);
        for (const stored of newEvents) await revision.revise(stored);
        const revisedExtremities = await revision.extremities();
        // The result of the resolution stays valid while only message events are sent.
        revised = await this.#resolveCurrentState(head, revision, revisedExtremities, revised);
        // Out-of-band memberships stay if keys are missing: the invite of a local user may be among the missing events.
        const outOfBandMembers = lacksKeys
          ? []
          : await readOutOfBandMembers(this.#deps.database.reader(), head.roomNid);
        await revision.copyRedactions();
        // Nothing may be awaited from here until everything is staged: the head must not change in between.
        if (head.extremities !== extremities || head.chain.id !== group || head.broken) continue;
        const { writer } = this.#deps;
        const finalState = revised;
        const durable = writer.extend(head, (reserve) =>
          this.#stage(head, revision, revisedExtremities, finalState, outOfBandMembers, lacksKeys, reserve),
        );
        // The write has taken over the new groups: `finally` must not drop them.
        revision.groups.length = 0;
        await this.#endRevision(revision, durable);
        return;
      }
    } catch (error) {
      resolver.forgetAll();
      throw error;
    } finally {
      this.#beforeStates.drop(revision.groups);
    }
  }

  /** Resolves when all events that have been added to the room so far are on disk. */
  async #waitForDisk(head: WritableHead): Promise<void> {
    const { writer } = this.#deps;
    const [stored] = head.recent;
    if (!stored) return;
    await writer.extend(head, (reserve) =>
      writer.stage({ ...emptyWrite, head, stored, reservation: reserve() }),
    );
  }

  /**
   * Resolves the current state from the revised extremities.
   * @param previous the previous result, which is returned when it was resolved from the same groups
   */
  async #resolveCurrentState(
    head: WritableHead,
    { before }: StateRevision,
    revisedExtremities: readonly Extremity[],
    previous: RevisedCurrentState | undefined,
  ): Promise<RevisedCurrentState> {
    const groups = [...new Set(revisedExtremities.map(({ stateGroup }) => stateGroup ?? 0))].sort(
      (a, b) => a - b,
    );
    const resolvedFrom = `${head.chain.id}: ${groups.join()}`;
    if (previous?.resolvedFrom === resolvedFrom) return previous;
    const change = await resolveCurrentState(this.#deps, head, groups, {
      state: before,
      unplacedEvent: undefined,
    });
    const prepared = change && (await PreparedCurrentState.prepare(head, change, this.#deps.slices));
    return { resolvedFrom, change, prepared };
  }

  /**
   * Caches the revised events in place of the events with partial states once the write is on disk, or drops them when
   * the write fails.
   */
  async #endRevision({ events }: StateRevision, durable: Promise<void>): Promise<void> {
    let isRevisionSaved = false;
    try {
      await durable;
      isRevisionSaved = true;
    } finally {
      await this.#deps.events.endRevision(events, isRevisionSaved);
    }
  }

  /**
   * Stages one write for all revised events and the new current state. Its synchronous work does not grow
   * with the number of events.
   */
  #stage(
    head: WritableHead,
    { events, groups, stateKeys, join }: StateRevision,
    revisedExtremities: readonly Extremity[],
    { change, prepared }: RevisedCurrentState,
    outOfBandMembers: readonly OutOfBandMember[],
    lacksKeys: boolean,
    reserve: ReservePlace,
  ): Promise<void> {
    const { writer } = this.#deps;
    const recent = [...head.recent]
      .map(({ nid }) => events.get(nid))
      .filter((revised) => revised !== undefined);
    const cause = events.get(join.nid) ?? join;
    const reservation = reserve();
    const { position } = reservation;
    for (const revised of recent) head.revise(revised);
    const applied = prepared?.apply(head, cause, position) ?? { stateChanges: [], membershipChanges: [] };
    const { membershipChanges, stripped } = endOutOfBandMemberships(head, outOfBandMembers, applied, cause);
    head.setExtremities(revisedExtremities);
    const column = lacksKeys
      ? keepPartial(head, position)
      : endPartial(head, { joinedAt: join.stream ?? position, position });
    const write: PreparedWrite = {
      ...emptyWrite,
      head,
      stored: cause,
      fact: {
        roomId: head.roomId,
        position,
        onTimeline: false,
        completesState: true,
        ...withoutEnd,
        stored: cause,
        ...applied,
        membershipChanges,
      },
      end: { extremities: revisedExtremities, group: head.chain.id },
      groups: [...groups, ...(change?.newGroups ?? [])],
      reservation,
      remote: {
        revised: events,
        stateKeys: [...stateKeys, ...(change?.newGroups.length ? change.entries.keys() : [])],
        stripped,
        partialState: JSON.stringify(column),
      },
    };
    const durable = writer.stage(write);
    this.#deps.events.beginRevision(events);
    for (const revised of recent) writer.setDurable(revised, durable);
    return durable;
  }
}

/** Ends the partial state of a head. @returns the value of `rooms.partial_state` */
function endPartial(
  head: WritableHead,
  { joinedAt, position }: { readonly joinedAt: number; readonly position: number },
): PartialStateColumn {
  const { servers = [], membersAt } = head.partial ?? {};
  head.formerPartial = { joinedAt, servers, ...(membersAt !== undefined && { membersAt }) };
  head.partial = undefined;
  head.completedAt = position;
  return { completedAt: position, ...head.formerPartial };
}

/**
 * Records that the partial state of a head lacks only events whose keys could not be fetched.
 * @returns the value of `rooms.partial_state`
 */
function keepPartial(head: WritableHead, position: number): PartialStateColumn | undefined {
  if (!head.partial) return undefined;
  head.partial = { ...head.partial, membersAt: position };
  head.completedAt = position;
  return head.partial;
}

/** A write without any rows. */
const emptyWrite = {
  rowAction: 'untouched',
  fact: undefined,
  content: '',
  end: undefined,
  groups: [],
  auth: [],
  redacts: undefined,
} as const;
