/** HTML pages of this server: rendered from templates, with strict headers, and their static files. */
import { fileURLToPath } from 'node:url';

export { type ContentSecurityPolicy, type PageOptions, Pages } from './pages.ts';
export { hasPlainHost } from './plain-host.ts';
export { staticFiles } from './static-files.ts';

/** Folder of the layout (`_base.html`) and the error page (`error.html`). */
export const pageTemplates = fileURLToPath(new URL('./templates', import.meta.url));

/** Folder of the style sheet of the layout. */
export const pageStaticFiles = fileURLToPath(new URL('./static', import.meta.url));
