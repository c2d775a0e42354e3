import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { SourceList } from './source-list.ts';

/** Returns all account data that clients have set for a user, both global and of rooms. */
export async function accountDataSetByClients(
  { accountData }: Pick<SourceList, 'accountData'>,
  userId: string,
): Promise<AccountDataItem[]> {
  const sections = accountData.filter(({ section }) => section.isSetByClients);
  return (await Promise.all(sections.map(({ section }) => section.all(userId)))).flat();
}
