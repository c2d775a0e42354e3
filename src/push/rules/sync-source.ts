import type { AccountDataItem, SyncSource } from '../../sync-contract/index.ts';
import type { PushRules } from './push-rules.ts';

/** Push rules in syncs, as account data of the type `m.push_rules`. Source: client-server API, "Push Rules: Events". */
export function pushRulesSyncSource(rules: PushRules): SyncSource {
  const all = async (userId: string): Promise<AccountDataItem[]> => {
    const [content, position] = await Promise.all([rules.content(userId), rules.changedAt(userId)]);
    return [{ roomId: undefined, type: 'm.push_rules', content, position }];
  };
  return {
    name: 'push rules',
    follow: (feeds) => feeds.followUsers(rules.pushRulesStream, ({ userId }) => [userId]),
    accountData: {
      hasRooms: false,
      isSetByClients: false,
      since: async (userId, { after, upTo }) =>
        (await rules.changedIn(userId, after, upTo)) ? all(userId) : [],
      all,
    },
  };
}
