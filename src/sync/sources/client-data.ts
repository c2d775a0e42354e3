import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { SourceList } from './source-list.ts';

/** All account data that clients have set for a user, of rooms as well. */
export async function clientDataOf(
  { accountData }: Pick<SourceList, 'accountData'>,
  userId: string,
): Promise<AccountDataItem[]> {
  const sections = accountData.filter(({ section }) => section.isSetByClients);
  return (await Promise.all(sections.map(({ section }) => section.all(userId)))).flat();
}
