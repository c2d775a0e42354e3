/** A rule in the table: its kind, id without `.m.rule.`, conditions and actions, each with spaces between the words. */
type Row = readonly [
  kind: 'override' | 'underride',
  name: string,
  conditions: readonly string[],
  actions: string,
];

const silent = '';
const notify = 'notify';
const withSound = 'notify sound=default';

/** The rules of the section "Predefined Rules" of the client-server API, in its order. `USER` is the user's id. */
const table: readonly Row[] = [
  ['override', 'master', [], silent],
  ['override', 'suppress_notices', ['event_match content.msgtype m.notice'], silent],
  [
    'override',
    'invite_for_me',
    ['event_match type m.room.member', 'event_match content.membership invite', 'event_match state_key USER'],
    withSound,
  ],
  ['override', 'member_event', ['event_match type m.room.member'], silent],
  [
    'override',
    'is_user_mention',
    ['event_property_contains content.m\\.mentions.user_ids USER'],
    `${withSound} highlight`,
  ],
  [
    'override',
    'is_room_mention',
    ['event_property_is content.m\\.mentions.room true', 'sender_notification_permission room'],
    'notify highlight',
  ],
  [
    'override',
    'tombstone',
    ['event_match type m.room.tombstone', 'event_match state_key '],
    'notify highlight',
  ],
  ['override', 'reaction', ['event_match type m.reaction'], silent],
  ['override', 'room.server_acl', ['event_match type m.room.server_acl', 'event_match state_key '], silent],
  ['override', 'suppress_edits', ['event_property_is content.m\\.relates_to.rel_type m.replace'], silent],
  ['underride', 'call', ['event_match type m.call.invite'], 'notify sound=ring'],
  [
    'underride',
    'encrypted_room_one_to_one',
    ['room_member_count 2', 'event_match type m.room.encrypted'],
    withSound,
  ],
  ['underride', 'room_one_to_one', ['room_member_count 2', 'event_match type m.room.message'], withSound],
  ['underride', 'message', ['event_match type m.room.message'], notify],
  ['underride', 'encrypted', ['event_match type m.room.encrypted'], notify],
];

/** The predefined rules of one kind, as the API returns them to a user. Only the master rule is disabled. */
export function predefinedRules(kind: 'override' | 'underride', userId: string): object[] {
  return table
    .filter(([rowKind]) => rowKind === kind)
    .map(([, name, conditions, actions]) => ({
      rule_id: `.m.rule.${name}`,
      default: true,
      enabled: name !== 'master',
      conditions: conditions.map((condition) => conditionOf(condition, userId)),
      actions: actions.split(' ').filter(Boolean).map(actionOf),
    }));
}

function conditionOf(row: string, userId: string): object {
  const [kind, key, word = ''] = row.split(' ');
  const value = word === 'USER' ? userId : word;
  if (kind === 'room_member_count') return { kind, is: key };
  if (kind === 'sender_notification_permission') return { kind, key };
  if (kind === 'event_match') return { kind, key, pattern: value };
  return { kind, key, value: value === 'true' ? true : value };
}

function actionOf(word: string): string | object {
  if (word.startsWith('sound=')) return { set_tweak: 'sound', value: word.slice('sound='.length) };
  return word === 'highlight' ? { set_tweak: 'highlight' } : word;
}
