import { localpartOf } from '../identifiers/user-ids.ts';
import {
  bodyContains,
  containsDisplayName,
  inThread,
  type PushMatcher,
  THREAD_SUBSCRIPTION,
} from './conditions.ts';
import type { PushAction, PushCondition, RuleKind } from './push-rule.ts';

/** A server-default rule. It is the same for all users except for its `memberPart`. */
export interface DefaultRule {
  readonly kind: RuleKind;
  readonly ruleId: string;
  readonly enabled: boolean;
  readonly actions: readonly PushAction[];
  /** The conditions that are the same for all users. Undefined in `content` rules. */
  readonly conditions?: readonly PushCondition[];
  /** The part that depends on the member: its JSON for clients, and its matcher. */
  readonly memberPart?: MemberPart;
  /**
   * True for a rule that looks for mentions in the body of events without `m.mentions`. The specification removed these
   * rules in v1.17; bots, bridges and older clients still mention users in this way.
   * https://spec.matrix.org/v1.16/client-server-api/#predefined-rules
   */
  readonly legacyMention?: true;
}

export interface MemberPart {
  /** The last condition of the rule, as clients see it. */
  readonly condition?: (userId: string) => PushCondition;
  /** The pattern of a `content` rule, as clients see it. */
  readonly pattern?: (userId: string) => string;
  /** Evaluates the condition or pattern. */
  readonly matches: PushMatcher;
}

const HIGHLIGHT: PushAction = { set_tweak: 'highlight' };
const sound = (value: string): PushAction => ({ set_tweak: 'sound', value });

const eventMatch = (key: string, pattern: string): PushCondition => ({ kind: 'event_match', key, pattern });
const typeIs = (type: string) => eventMatch('type', type);
const EMPTY_STATE_KEY = eventMatch('state_key', '');
const TWO_MEMBERS: PushCondition = { kind: 'room_member_count', is: '2' };
const MAY_NOTIFY_ROOM: PushCondition = { kind: 'sender_notification_permission', key: 'room' };

function override(
  ruleId: string,
  conditions: readonly PushCondition[],
  actions: readonly PushAction[],
  furtherFields: Partial<DefaultRule> = {},
): DefaultRule {
  return { kind: 'override', ruleId, enabled: true, conditions, actions, ...furtherFields };
}

function underride(
  ruleId: string,
  conditions: readonly PushCondition[],
  actions: readonly PushAction[],
): DefaultRule {
  return { kind: 'underride', ruleId, enabled: true, conditions, actions };
}

/** A rule for messages in threads, under its unstable name. Source: MSC4306, "New Push Rules". */
function postcontent(
  name: string,
  { subscribed, enabled }: { readonly subscribed: boolean; readonly enabled: boolean },
  actions: readonly PushAction[],
): DefaultRule {
  const memberPart: MemberPart = {
    condition: () => ({ kind: THREAD_SUBSCRIPTION, subscribed }),
    matches: inThread(subscribed),
  };
  const ruleId = `.io.element.msc4306.rule.${name}`;
  return { kind: 'postcontent', ruleId, enabled, conditions: [], actions, memberPart };
}

/** The only default rule that precedes the user's own rules. */
export const MASTER_RULE_ID = '.m.rule.master';

/** A rule of MSC3930 for polls (MSC3381), under its unstable name. */
const pollRule = (name: string) => `.org.matrix.msc3930.rule.${name}`;
const pollTypeIs = (name: string) => typeIs(`org.matrix.msc3381.poll.${name}`);

/**
 * The default rules in the order of the specification, including the rules that v1.17 removed.
 * Source: client-server API, "Predefined Rules"; MSC3930 for polls.
 */
export const DEFAULT_RULES: readonly DefaultRule[] = [
  override(MASTER_RULE_ID, [], [], { enabled: false }),
  override('.m.rule.suppress_notices', [eventMatch('content.msgtype', 'm.notice')], []),
  override(
    '.m.rule.invite_for_me',
    [typeIs('m.room.member'), eventMatch('content.membership', 'invite')],
    ['notify', sound('default')],
    {
      memberPart: {
        condition: (userId) => eventMatch('state_key', userId),
        matches: (event, { userId }) => event.stateKey === userId,
      },
    },
  ),
  override('.m.rule.member_event', [typeIs('m.room.member')], []),
  override('.m.rule.is_user_mention', [], ['notify', sound('default'), HIGHLIGHT], {
    memberPart: {
      condition: (userId) => ({
        kind: 'event_property_contains',
        key: 'content.m\\.mentions.user_ids',
        value: userId,
      }),
      matches: (event, { userId }) => event.mentionedUsers.has(userId),
    },
  }),
  override('.m.rule.contains_display_name', [], ['notify', sound('default'), HIGHLIGHT], {
    legacyMention: true,
    memberPart: { condition: () => ({ kind: 'contains_display_name' }), matches: containsDisplayName },
  }),
  override(
    '.m.rule.is_room_mention',
    [{ kind: 'event_property_is', key: 'content.m\\.mentions.room', value: true }, MAY_NOTIFY_ROOM],
    ['notify', HIGHLIGHT],
  ),
  override(
    '.m.rule.roomnotif',
    [eventMatch('content.body', '@room'), MAY_NOTIFY_ROOM],
    ['notify', HIGHLIGHT],
    {
      legacyMention: true,
    },
  ),
  override('.m.rule.tombstone', [typeIs('m.room.tombstone'), EMPTY_STATE_KEY], ['notify', HIGHLIGHT]),
  override('.m.rule.reaction', [typeIs('m.reaction')], []),
  override('.m.rule.room.server_acl', [typeIs('m.room.server_acl'), EMPTY_STATE_KEY], []),
  override(
    '.m.rule.suppress_edits',
    [{ kind: 'event_property_is', key: 'content.m\\.relates_to.rel_type', value: 'm.replace' }],
    [],
  ),
  override(pollRule('poll_response'), [pollTypeIs('response')], []),
  {
    kind: 'content',
    ruleId: '.m.rule.contains_user_name',
    enabled: true,
    actions: ['notify', sound('default'), HIGHLIGHT],
    legacyMention: true,
    memberPart: {
      pattern: localpartOf,
      matches: (event, { userId }) => bodyContains(event, localpartOf(userId)),
    },
  },
  // Disabled, because it would silence all threads for users whose clients do not follow threads (decision
  // 0104).
  postcontent('unsubscribed_thread', { subscribed: false, enabled: false }, []),
  postcontent('subscribed_thread', { subscribed: true, enabled: true }, ['notify', sound('default')]),
  underride('.m.rule.call', [typeIs('m.call.invite')], ['notify', sound('ring')]),
  underride(
    '.m.rule.encrypted_room_one_to_one',
    [TWO_MEMBERS, typeIs('m.room.encrypted')],
    ['notify', sound('default')],
  ),
  underride('.m.rule.room_one_to_one', [TWO_MEMBERS, typeIs('m.room.message')], ['notify', sound('default')]),
  underride('.m.rule.message', [typeIs('m.room.message')], ['notify']),
  underride('.m.rule.encrypted', [typeIs('m.room.encrypted')], ['notify']),
  underride(
    pollRule('poll_start_one_to_one'),
    [TWO_MEMBERS, pollTypeIs('start')],
    ['notify', sound('default')],
  ),
  underride(pollRule('poll_start'), [pollTypeIs('start')], ['notify']),
  underride(pollRule('poll_end_one_to_one'), [TWO_MEMBERS, pollTypeIs('end')], ['notify', sound('default')]),
  underride(pollRule('poll_end'), [pollTypeIs('end')], ['notify']),
];
