import type { TextIndex } from '../../kernel/database/index.ts';
import type { DirectoryTables } from '../tables.ts';
import { readUsersByNid, searchedText, userTexts } from './store.ts';

/** The full-text index of users. A user's text changes with the user's name. */
export const userTextIndex: TextIndex = {
  name: userTexts,
  changes: true,
  async documents(database, nids) {
    const users = await readUsersByNid(database.scanner<DirectoryTables>(), nids);
    return users.map((user) => ({ id: user.nid, scope: 0, text: searchedText(user) }));
  },
};
