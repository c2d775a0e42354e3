/** The console for administrators: starts the application in the page `index.html`. */
import { render } from 'preact';
import { Application } from './application.tsx';

const root = document.getElementById('console');
if (root) render(<Application />, root);
