import type { RoomEvent } from '../event.ts';
import { compareCodePoints } from '../json/index.ts';
import { PowerLevels } from '../power-levels/index.ts';
import { createEventOf, powerLevelsEventOf } from './auth-events.ts';
import { Heap } from './heap.ts';
import type { StateResolutionSource } from './source.ts';
import { eachInSteps, eventsPerStep } from './steps.ts';

/** A node of the graph that is sorted. */
interface Node {
  readonly event: RoomEvent;
  /** The power level of the sender according to the auth events of the event. */
  readonly senderLevel: number;
  /** How many of its auth events are in the graph and not sorted yet. */
  pendingAuthEvents: number;
  /** The events in the graph that have this one among their auth events. */
  readonly dependents: Node[];
}

/**
 * Sorts events in reverse topological power order, earliest first, by Kahn's algorithm: of the events whose auth events
 * have all been taken, takes the one with the highest power level of the sender, and repeats; at the same level the one
 * with the earliest `origin_server_ts`, then the one with the smallest event id.
 * Leaves out events in a cycle, which only rooms with chosen event ids (v1 and v2) can have, and the events that depend
 * on them.
 * Source: https://spec.matrix.org/latest/rooms/v2/#definitions
 */
export function* reverseTopologicalPowerOrder(
  events: readonly RoomEvent[],
  source: StateResolutionSource,
): Generator<void, RoomEvent[]> {
  const ready = new Heap(compareNodes);
  for (const node of yield* graphOf(events, source)) if (node.pendingAuthEvents === 0) ready.push(node);
  const order: RoomEvent[] = [];
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    order.push(node.event);
    for (const other of node.dependents) if (--other.pendingAuthEvents === 0) ready.push(other);
    if (order.length % eventsPerStep === 0) yield;
  }
  return order;
}

function* graphOf(
  events: readonly RoomEvent[],
  source: StateResolutionSource,
): Generator<void, Iterable<Node>> {
  const nodes = new Map<string, Node>();
  yield* eachInSteps(events, (event) => {
    nodes.set(event.eventId, {
      event,
      senderLevel: levelOfSender(event, source),
      pendingAuthEvents: 0,
      dependents: [],
    });
  });
  yield* eachInSteps(nodes.values(), (node) => {
    for (const id of new Set(node.event.authEventIds)) {
      const authNode = nodes.get(id);
      if (authNode === undefined) continue;
      authNode.dependents.push(node);
      node.pendingAuthEvents++;
    }
  });
  return nodes.values();
}

/**
 * Returns the power level of the sender. A level that cannot be read counts as the lowest, so that the order
 * stays total.
 */
function levelOfSender(event: RoomEvent, source: StateResolutionSource): number {
  const levels = new PowerLevels(createEventOf(event, source), powerLevelsEventOf(event, source));
  const level = levels.ofUser(event.sender);
  return Number.isNaN(level) ? Number.NEGATIVE_INFINITY : level;
}

function compareNodes(a: Node, b: Node): number {
  if (a.senderLevel !== b.senderLevel) return a.senderLevel > b.senderLevel ? -1 : 1;
  return compareByTime(a.event, b.event);
}

/** Compares by `origin_server_ts`, then by event id. */
export function compareByTime(a: RoomEvent, b: RoomEvent): number {
  return a.originServerTs - b.originServerTs || compareCodePoints(a.eventId, b.eventId);
}
